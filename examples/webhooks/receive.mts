// Receive webhooks: verify each, fetch the answer, print it.
//
//   WEBHOOK_SECRET=whsec_… DUALTRACK_API_KEY=dt_… DUALTRACK_URL=https://chat.example.org node receive.mts
//
// Node 22.18 or newer, no packages. It listens on 127.0.0.1, port 9000 (PORT): put a proxy with TLS in front of it. The
// key needs the scope `read`.

import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

type Told = { type: string; timestamp: string; data: Record<string, string | null> };

const TOLERANCE = 5 * 60; // seconds
const secret = Buffer.from((process.env.WEBHOOK_SECRET ?? "").replace(/^whsec_/, ""), "base64");
const url = (process.env.DUALTRACK_URL ?? "").replace(/\/$/, "");
const authorization = `Bearer ${process.env.DUALTRACK_API_KEY}`;
const seen = new Set<string>(); // a message may come twice, under the same id; keep the ids where they survive a restart

/** The event, if one of the signatures is right and the message is not old. */
function verified(headers: Record<string, unknown>, body: Buffer): Told | undefined {
  const [id, at, signatures] = ["id", "timestamp", "signature"].map((name) => String(headers[`webhook-${name}`]));
  const right = createHmac("sha256", secret).update(`${id}.${at}.`).update(body).digest();
  const isRight = signatures.split(" ").some((signature) => {
    const sent = Buffer.from(signature.replace(/^v1,/, ""), "base64");
    return signature.startsWith("v1,") && sent.length === right.length && timingSafeEqual(sent, right);
  });
  const isNew = Math.abs(Date.now() / 1000 - Number(at)) <= TOLERANCE;
  return isRight && isNew ? JSON.parse(body.toString()) : undefined;
}

async function handle({ type, data }: Told): Promise<void> {
  if (type !== "chat.done") return console.log(type, JSON.stringify(data));
  const answer = await fetch(`${url}/v1/chats/${data.chat_id}`, { headers: { authorization } });
  if (!answer.ok) throw new Error(`${answer.status}`);
  console.log((await answer.json()).response);
}

const server = createServer((request, response) => {
  const parts: Buffer[] = [];
  request.on("data", (part: Buffer) => parts.push(part));
  request.on("end", () => {
    const told = verified(request.headers, Buffer.concat(parts));
    response.writeHead(told ? 204 : 401).end(); // first: whoever answers after five seconds gets it again
    const id = String(request.headers["webhook-id"]);
    if (!told || seen.has(id)) return;
    seen.add(id);
    handle(told).catch((problem) => console.error(problem.message));
  });
});

server.listen(Number(process.env.PORT ?? 9000), "127.0.0.1", () =>
  console.log(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}`),
);
