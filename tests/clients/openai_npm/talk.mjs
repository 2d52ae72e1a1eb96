// Conversations by the npm clients, as tests/clients/talks.py has them: one that ends in `_tools` answers the first
// question with a tool of the client's own, `weather`, one in `_output` with an object.
// It runs in the folder where the lock's packages are installed.

import { createInterface } from "node:readline";

import { createOpenResponses } from "@ai-sdk/open-responses";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, Output, stepCountIs, streamText, tool } from "ai";
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

const CITY = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const TOWN = {
  type: "object",
  properties: { name: { type: "string" }, people: { type: "integer" } },
  required: ["name", "people"],
  additionalProperties: false,
};
const weather = ({ city }) => `Rain in ${city}, 11 degrees.`;

async function openaiTools(story) {
  const client = new OpenAI({ baseURL: story.url, apiKey: story.key });
  const parameters = { name: "weather", parameters: CITY, parse: JSON.parse, function: weather };
  const answers = [];
  for (const { text, stream } of story.questions) {
    const run = client.chat.completions.runTools({
      model: story.model,
      messages: [{ role: "user", content: text }],
      tools: [{ type: "function", function: parameters }],
      stream,
    });
    answers.push(await run.finalContent());
  }
  return answers;
}

async function openaiOutput(story) {
  const client = new OpenAI({ baseURL: story.url, apiKey: story.key });
  const said = await client.chat.completions.parse({
    model: story.model,
    messages: [{ role: "user", content: story.questions[0].text }],
    response_format: { type: "json_schema", json_schema: { name: "town", schema: TOWN, strict: true } },
  });
  const town = said.choices[0].message.parsed ?? JSON.parse(said.choices[0].message.content);
  return [`${town.name} ${town.people}`];
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

const withTools = (modelOf) => async (story) => {
  const tools = {
    weather: tool({ description: "The weather in a city.", inputSchema: jsonSchema(CITY), execute: weather }),
  };
  const answers = [];
  for (const { text, stream } of story.questions) {
    const given = { model: modelOf(story), prompt: text, tools, stopWhen: stepCountIs(5) };
    answers.push(await (stream ? streamText(given) : await generateText(given)).text);
  }
  return answers;
};

const withOutput = (modelOf) => async (story) => {
  const schema = jsonSchema(TOWN);
  const prompt = story.questions[0].text;
  const { output } = await generateText({ model: modelOf(story), prompt, output: Output.object({ schema }) });
  return [`${output.name} ${output.people}`];
};

const MODELS = {
  ai_sdk_openai: ({ url, key, model }) => createOpenAI({ baseURL: url, apiKey: key }).chat(model),
  ai_sdk_responses: ({ url, key, model }) => createOpenAI({ baseURL: url, apiKey: key })(model),
  ai_sdk_open_responses: ({ url, key, model }) =>
    createOpenResponses({ name: "dualtrack", url: `${url}/responses`, apiKey: key })(model),
  ai_sdk_compatible: ({ url, key, model }) =>
    createOpenAICompatible({ name: "dualtrack", baseURL: url, apiKey: key, supportsStructuredOutputs: true })(model),
};

const CLIENTS = { openai_npm: openai, openai_npm_tools: openaiTools, openai_npm_output: openaiOutput };
for (const [name, modelOf] of Object.entries(MODELS)) {
  CLIENTS[name] = byAiSdk(modelOf);
  CLIENTS[`${name}_tools`] = withTools(modelOf);
  CLIENTS[`${name}_output`] = withOutput(modelOf);
}

console.log = console.error; // standard output is the answers'
for await (const line of createInterface({ input: process.stdin })) {
  const { client, story } = JSON.parse(line);
  const answer = await CLIENTS[client](story).then(
    (told) => ({ told }),
    (error) => ({ failed: error.stack }),
  );
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
