// Ask dualtrack and print the answer as it is written; an interrupted stream is resumed.
//
//   node examples/clients/stream-chat.mts "How do I set up OAuth for Twitter ads?"
//
// Node 22.18 or newer, no packages. DUALTRACK_URL: the API (default: the local stack). DUALTRACK_TOKEN: an ID token
// (default: one of the local stack). Exit 0 if the chat was answered, 1 if it failed.

type Started = { chat_id: string; conversation_id: string; events_url: string };
type ServerEvent = { id: string; event: string; data: Record<string, any> };

const url = (process.env.DUALTRACK_URL ?? "http://127.0.0.1:8000").replace(/\/$/, "");
const pause = (seconds: number) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

async function token(): Promise<string> {
  if (process.env.DUALTRACK_TOKEN) return process.env.DUALTRACK_TOKEN;
  const answer = await fetch(`${url}/dev/token`);
  return (await answer.json()).token;
}

/** Start the chat. The key makes it safe to send again if the answer is lost. */
async function start(authorization: string, message: string): Promise<Started> {
  const key = crypto.randomUUID();
  for (const wait of [1, 2, 4, 0]) {
    const answer = await fetch(`${url}/v1/chats`, {
      method: "POST",
      headers: { authorization, "content-type": "application/json", "idempotency-key": key },
      body: JSON.stringify({ message }),
    }).catch((problem: unknown) => {
      if (!wait) throw problem;
    });
    if (answer?.ok) return answer.json();
    if (answer && (!wait || ![429, 500, 503, 504].includes(answer.status))) {
      const { error } = await answer.json();
      throw new Error(`${error.code}: ${error.message}`);
    }
    await pause(wait);
  }
  throw new Error("unreachable");
}

/** The events of one connection, until it ends. */
async function* read(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  let rest = "";
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    const blocks = (rest + piece).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const fields = new Map<string, string>();
      for (const line of block.split("\n")) {
        const [, name, value] = /^([a-z]+): ?(.*)$/.exec(line) ?? [];
        if (name) fields.set(name, value);
      }
      const data = fields.get("data");
      if (data) yield { id: fields.get("id")!, event: fields.get("event")!, data: JSON.parse(data) };
    }
  }
}

/** Every event, once and in order, over as many connections as needed. */
async function* events(authorization: string, path: string): AsyncGenerator<ServerEvent> {
  let last = "";
  for (let failures = 0; ; ) {
    try {
      const headers = { authorization, ...(last && { "last-event-id": last }) };
      const answer = await fetch(url + path, { headers });
      if (!answer.body || (!answer.ok && answer.status !== 429 && answer.status < 500)) {
        failures = 5;
      }
      if (!answer.ok || !answer.body) throw new Error(`status ${answer.status}`);
      for await (const event of read(answer.body)) {
        last = event.id;
        failures = 0;
        yield event;
        if (event.event === "done" || event.event === "error") return;
      }
    } catch (problem) {
      failures += 1;
      if (failures >= 5) throw problem;
      await pause(Math.min(2 ** failures, 10));
    }
  }
}

async function main(): Promise<void> {
  const authorization = `Bearer ${await token()}`;
  const chat = await start(authorization, process.argv[2]);
  for await (const { event, data } of events(authorization, chat.events_url)) {
    if (event === "delta") process.stderr.write(data.text);
    // a repeated turn number voids the turn's text so far
    else if (event === "turn") console.error(`\n[turn ${data.turn}]`);
    else if (event === "tool_calls_start")
      for (const call of data.calls) console.error(`\n[${call.tool} ${JSON.stringify(call.input)}]`);
    else if (event === "answer") console.log(data.response);
    else if (event === "done") console.error(`\n[${data.credits_used} credits]`);
    else if (event === "error") throw new Error(`${data.code}: ${data.message}`);
  }
}

main().catch((problem: Error) => {
  console.error(problem.message);
  process.exitCode = 1;
});
