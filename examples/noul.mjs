// Whether a statement holds: the probability that it does.
import { Laya } from 'laya-artifacts';

const laya = await Laya.open('laya-tiny');
const { answers } = await laya.predict({
  context: 'I was charged twice and I am furious.',
  questions: { angry: { type: 'noul', instructions: 'Is the customer angry?' } },
});
console.log(JSON.stringify(answers.angry, null, 1));
await laya.close();
