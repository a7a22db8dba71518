// One of several labels, each with a probability.
import { Laya } from 'laya-artifacts';

const laya = await Laya.open('laya-tiny');
const { answers } = await laya.predict({
  context: 'I was charged twice for my order, please fix this today.',
  questions: {
    topic: {
      type: 'choice',
      instructions: 'Which team should handle this?',
      criteria: {
        billing: 'charges, refunds, invoices',
        shipping: 'parcels and delivery',
        technical: 'the app does not work',
      },
    },
  },
});
console.log(JSON.stringify(answers.topic, null, 1));
await laya.close();
