// A conversation by one of the npm clients, which the last argument names, with a `Story` as JSON on standard input.
// It runs in the folder where the lock's packages are installed. It prints what its user saw.

import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText } from "ai";
import OpenAI from "openai";

async function openai(story) {
  const client = new OpenAI({ baseURL: story.url, apiKey: story.key });
  const messages = [{ role: "system", content: story.system }];
  const answers = [];
  for (const { text, stream } of story.questions) {
    messages.push({ role: "user", content: text });
    let answer = "";
    if (stream) {
      const chunks = await client.chat.completions.create({ model: story.model, messages, stream: true });
      for await (const chunk of chunks) {
        answer += chunk.choices[0]?.delta?.content ?? "";
      }
    } else {
      const whole = await client.chat.completions.create({ model: story.model, messages });
      answer = whole.choices[0].message.content;
    }
    messages.push({ role: "assistant", content: answer });
    answers.push(answer);
  }
  return answers;
}

const byAiSdk = (modelOf) => async (story) => {
  const model = modelOf(story);
  const messages = [];
  const answers = [];
  for (const { text, stream } of story.questions) {
    messages.push({ role: "user", content: text });
    const given = { model, system: story.system, messages };
    const result = stream ? streamText(given) : await generateText(given);
    messages.push(...(await result.response).messages);
    answers.push(await result.text);
  }
  return answers;
};

const CLIENTS = {
  openai_npm: openai,
  ai_sdk_openai: byAiSdk(({ url, key, model }) => createOpenAI({ baseURL: url, apiKey: key }).chat(model)),
  ai_sdk_compatible: byAiSdk(({ url, key, model }) =>
    createOpenAICompatible({ name: "dualtrack", baseURL: url, apiKey: key })(model),
  ),
};

const input = [];
for await (const piece of process.stdin) {
  input.push(piece);
}
console.log(JSON.stringify(await CLIENTS[process.argv.at(-1)](JSON.parse(Buffer.concat(input)))));
