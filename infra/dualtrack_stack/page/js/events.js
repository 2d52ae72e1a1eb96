/**
 * Follows a chat's events by fetch (EventSource cannot send a token) until the terminal one, or until the chat
 * waits for a decision: then nothing more comes before somebody has decided.
 *
 * A connection that drops, ends early or is silent is reopened with `Last-Event-ID`, so no event is lost or
 * repeated.
 */
import { createParser } from "../lib/eventsource-parser.js";
import { Refusal } from "./api.js";

const TERMINAL = new Set(["done", "error"]);
const SILENCE = 40_000; // the server sends a comment every 15 s
const FIRST_PAUSE = 250;
const LONGEST_PAUSE = 8_000;

const LOST = "Connection lost. Resuming…";
const CROWDED = "Too many answers are open in other windows. This one continues when another ends…";

/**
 * Calls `onEvent({id, event, data})` in order; `onTrouble(text)` when the connection is lost or refused
 * because the user has too many, and with "" when it is back.
 * Throws the Refusal of a chat without available events, and AbortError when `signal` aborts.
 */
export async function follow(api, chatId, { signal, onEvent, onTrouble = () => {} }) {
  const seen = { id: 0, ended: false, paused: false };
  let pause = FIRST_PAUSE;
  while (!seen.ended) {
    const before = seen.id;
    let problem = null;
    try {
      await readOnce(api, chatId, seen, { signal, onEvent, onTrouble });
    } catch (caught) {
      if (signal.aborted || isFinal(caught)) throw caught;
      problem = caught;
    }
    if (seen.ended || seen.paused) return;
    if (seen.id > before) pause = FIRST_PAUSE;
    else if (problem) onTrouble(isCrowded(problem) ? CROWDED : LOST);
    await wait(Math.max(pause, secondsAsked(problem) * 1000), signal);
    pause = Math.min(pause * 2, LONGEST_PAUSE);
  }
}

const isCrowded = (problem) => problem instanceof Refusal && problem.status === 429;
const secondsAsked = (problem) => (isCrowded(problem) && problem.detail.retry_after) || 0;
const isFinal = (problem) => problem instanceof Refusal && problem.status < 500 && !isCrowded(problem);

async function readOnce(api, chatId, seen, { signal, onEvent, onTrouble }) {
  const connection = new AbortController();
  const quit = () => connection.abort();
  signal.addEventListener("abort", quit);
  let silence = setTimeout(quit, SILENCE);
  const parser = createParser({ onEvent: (message) => accept(message, seen, onEvent) });
  try {
    const headers = seen.id ? { "Last-Event-ID": String(seen.id) } : {};
    const response = await api.open("GET", `/v1/chats/${chatId}/events`, {
      headers,
      signal: connection.signal,
    });
    onTrouble("");
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let piece = await reader.read(); !piece.done && !seen.ended; piece = await reader.read()) {
      clearTimeout(silence);
      silence = setTimeout(quit, SILENCE);
      parser.feed(piece.value);
    }
  } finally {
    clearTimeout(silence);
    signal.removeEventListener("abort", quit);
    connection.abort();
  }
}

function accept(message, seen, onEvent) {
  const id = Number(message.id);
  if (!(id > seen.id)) return;
  seen.id = id;
  seen.ended = TERMINAL.has(message.event);
  seen.paused = message.event === "paused";
  onEvent({ id, event: message.event, data: JSON.parse(message.data) });
}

/** Waits, at most until the network is back. */
function wait(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const go = () => {
      clearTimeout(timer);
      window.removeEventListener("online", go);
      signal.removeEventListener("abort", quit);
      resolve();
    };
    const quit = () => {
      clearTimeout(timer);
      window.removeEventListener("online", go);
      reject(signal.reason);
    };
    const timer = setTimeout(go, milliseconds);
    window.addEventListener("online", go);
    signal.addEventListener("abort", quit, { once: true });
  });
}
