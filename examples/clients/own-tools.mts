// Ask dualtrack with a tool that this program runs itself: how many files a folder of this machine has.
//
//   node examples/clients/own-tools.mts "count_files folder=."
//
// Node 22.18 or newer, no packages. DUALTRACK_URL: the API (default: the local stack). DUALTRACK_TOKEN: an ID token, or an
// API key with the scope `chat` (default: a token of the local stack). Exit 0 if the chat was answered, 1 if it was not.

import { readdir } from "node:fs/promises";

type Call = { id: string; tool: string; input: Record<string, string>; kind: "approval" | "client_tool" | "question" };

const url = (process.env.DUALTRACK_URL ?? "http://127.0.0.1:8000").replace(/\/$/, "");
const COUNT_FILES = {
  name: "count_files",
  description: "Counts the files directly in a folder of the user's machine.",
  input_schema: {
    type: "object",
    properties: { folder: { type: "string", description: "Its path." } },
    required: ["folder"],
  },
};

async function countFiles({ folder }: Record<string, string>): Promise<string> {
  const entries = await readdir(folder, { withFileTypes: true });
  return `${entries.filter((entry) => entry.isFile()).length} files`;
}

/** The result of a call, or why there is none. What waits for a person is declined: nobody is here. */
async function decision(call: Call): Promise<object> {
  if (call.kind !== "client_tool") return { id: call.id, approve: false, reason: "Nobody is here to decide." };
  return countFiles(call.input).then(
    (result) => ({ id: call.id, result }),
    (problem: Error) => ({ id: call.id, result: problem.message, is_error: true }),
  );
}

async function post(token: string, path: string, body: object, headers: Record<string, string> = {}): Promise<any> {
  const answer = await fetch(url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  const content: any = await answer.json();
  if (!answer.ok) throw new Error(`${content.error.code}: ${content.error.message}`);
  return content;
}

async function main(): Promise<void> {
  const token = process.env.DUALTRACK_TOKEN ?? (await (await fetch(`${url}/dev/token`)).json()).token;
  const body = { message: process.argv[2], tools: [COUNT_FILES] };
  const key = { "idempotency-key": crypto.randomUUID() };
  for (;;) {
    // with the same key, the request can be repeated: it returns the same chat, once it has ended or paused
    const chat = await post(token, "/v1/chats?wait=25", body, key);
    if (chat.status === "paused") {
      const decisions = await Promise.all(chat.pause.calls.map(decision));
      await post(token, `/v1/chats/${chat.chat_id}/decisions`, { decisions });
    } else if (chat.status !== "running") {
      if (!chat.response) throw new Error(chat.error.message);
      console.log(chat.response);
      return;
    }
  }
}

main().catch((problem: Error) => {
  console.error(problem.message);
  process.exitCode = 1;
});
