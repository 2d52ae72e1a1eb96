/**
 * Follows a chat's events by fetch (EventSource cannot send a token) until the terminal one.
 *
 * A connection that drops, ends early or falls silent is opened again with `Last-Event-ID`, so nothing
 * is lost and nothing comes twice.
 */
import { createParser } from "../lib/eventsource-parser.js";
import { Refusal } from "./api.js";

const TERMINAL = new Set(["done", "error"]);
const SILENCE = 40_000; // the server sends a comment every 15 s
const FIRST_PAUSE = 250;
const LONGEST_PAUSE = 8_000;

/**
 * Calls `onEvent({id, event, data})` in order; `onLive(boolean)` when the connection is lost or back.
 * Throws the Refusal of a chat whose events are not to be had, and AbortError when `signal` aborts.
 */
export async function follow(api, chatId, { signal, onEvent, onLive = () => {} }) {
  const seen = { id: 0, ended: false };
  let pause = FIRST_PAUSE;
  while (!seen.ended) {
    const before = seen.id;
    try {
      await readOnce(api, chatId, seen, { signal, onEvent, onLive });
    } catch (problem) {
      if (signal.aborted || isFinal(problem)) throw problem;
    }
    if (seen.ended) return;
    if (seen.id > before) pause = FIRST_PAUSE;
    else onLive(false);
    await wait(pause, signal);
    pause = Math.min(pause * 2, LONGEST_PAUSE);
  }
}

const isFinal = (problem) => problem instanceof Refusal && problem.status < 500 && problem.status !== 429;

async function readOnce(api, chatId, seen, { signal, onEvent, onLive }) {
  const connection = new AbortController();
  const quit = () => connection.abort();
  signal.addEventListener("abort", quit);
  let silence = setTimeout(quit, SILENCE);
  const parser = createParser({ onEvent: (message) => accept(message, seen, onEvent) });
  try {
    const headers = seen.id ? { "Last-Event-ID": String(seen.id) } : {};
    const response = await api.open("GET", `/v1/chats/${chatId}/events`, { headers, signal: connection.signal });
    onLive(true);
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
  onEvent({ id, event: message.event, data: JSON.parse(message.data) });
}

/** Waits, but no longer than until the network is back. */
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
