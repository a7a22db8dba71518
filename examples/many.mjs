// Many texts at once: requests wait in one queue, and a signal gives up what takes too long.
import { Laya } from 'laya-artifacts';

const texts = [
  'When will my parcel arrive?',
  'The screen stays black.',
  'Please refund the payment that was taken on Monday.',
];
const questions = {
  topic: { type: 'choice', instructions: 'What is the topic?', criteria: ['billing', 'technical', 'shipping'] },
};
const laya = await Laya.open('laya-tiny');
const signal = AbortSignal.timeout(10_000);
const asked = texts.map((context) => laya.predict({ context, questions }, { signal }));
for (const [i, { answers }] of (await Promise.all(asked)).entries()) {
  console.log(JSON.stringify({ text: texts[i], topic: answers.topic.choice, sure: answers.topic.answer_confidence }));
}
await laya.close();
