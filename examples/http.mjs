// The same question over HTTP: `npx laya-artifacts serve --model laya-tiny` first, then this, with its address.
const [address = 'http://127.0.0.1:8642'] = process.argv.slice(2);
const response = await fetch(`${address}/v1/systemone`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({
    model: 'laya-tiny',
    state: 'I was charged twice and I am furious.',
    questions: { angry: { type: 'noul', instructions: 'Is the customer angry?' } },
  }),
});
const { answers, usage } = await response.json();
console.log(JSON.stringify({ status: response.status, answers, usage }, null, 1));
