// A level on a scale: the mean of the levels' numbers, weighted with their probabilities.
import { Laya } from 'laya-artifacts';

const laya = await Laya.open('laya-tiny');
const { answers } = await laya.predict({
  context: 'My router keeps losing the connection. I need an answer today.',
  questions: {
    urgency: {
      type: 'score',
      instructions: 'Rate the urgency.',
      criteria: ['no hurry', 'this week', 'today', 'emergency'],
    },
  },
});
console.log(JSON.stringify(answers.urgency, null, 1));
await laya.close();
