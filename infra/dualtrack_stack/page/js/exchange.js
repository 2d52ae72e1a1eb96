/**
 * An exchange: a question and its chat, as an immutable value. Pure.
 *
 * It is built from events (`reduce`) or from stored records (`fromRecords`); a chat object adds what records
 * lack (`withChat`).
 *
 * status: sending | running | paused | answered | done | failed | cancelled
 * uploaded: null, or the share of its large files that is uploaded, while they are
 * pause: null, or what a paused chat waits for: {calls: [{id, tool, input, kind, allowable}], expiresAt}
 * continues: the answer that goes on in this exchange's, in place of a question; empty for none
 * leftOut: the question whose results were left out, so that the service would answer; category: of a refusal
 * branches: null, or the conversations that branch here (`branchesOf`)
 * turns: [{turn, maxTurns, final, misfit, thinking, thought, text, began, ended, calls: [id],
 * retry?: {tries, at, seconds, until}}]; `thought` is when its thinking ended,
 * calls: {id: {…, state}}
 */
import { placed } from "./file_chip.js";

const NO_ANSWER = /^\(no answer: (failed|cancelled)\)$/;

export function ask(question, attachments = []) {
  return {
    messageId: "",
    chatId: "",
    question,
    continues: "",
    leftOut: "",
    category: "",
    attachments,
    status: "sending",
    uploaded: null,
    turns: [],
    calls: {},
    response: null,
    responseId: "",
    sources: [],
    stop: "",
    turnCount: 0,
    credits: null,
    shortage: null,
    memory: null,
    pause: null,
    fictional: false,
    error: null,
    trouble: "",
    branches: null,
  };
}

export const admitted = (exchange, { chat_id: chatId, message_id: messageId }) => ({
  ...exchange,
  chatId,
  messageId,
  attachments: placed(exchange.attachments, messageId),
  status: "running",
});

/** Whether the chat has not ended. */
export const isOpen = ({ status }) => status === "sending" || status === "running" || status === "paused";

/** The text that is streaming: the last turn's, until its tool calls. */
export function writing(exchange) {
  const last = exchange.turns.at(-1);
  return last && last.calls.length === 0 ? last.text : "";
}

const HANDLERS = {
  record: (exchange, data) =>
    /-r$/.test(data.record_id) ? { ...exchange, responseId: data.record_id } : exchange,
  turn: (exchange, data) => ({
    ...exchange,
    turnCount: Math.max(exchange.turnCount, data.turn),
    // a repeated number means a retry of the call: its results so far are void
    turns: [
      ...closed(
        exchange.turns.filter((turn) => turn.turn < data.turn),
        data.at,
      ),
      {
        turn: data.turn,
        maxTurns: data.max_turns,
        final: data.final,
        misfit: data.misfit ?? "",
        thinking: "",
        thought: "",
        text: "",
        began: data.at,
        ended: "",
        calls: [],
        ...asked(exchange.turns.find((turn) => turn.turn === data.turn)),
      },
    ],
  }),
  thinking: (exchange, data) => ({
    ...exchange,
    turns: exchange.turns.map((turn) =>
      turn.turn === data.turn ? { ...turn, thinking: turn.thinking + data.text, retry: null } : turn,
    ),
  }),
  delta: (exchange, data) => ({
    ...exchange,
    turns: exchange.turns.map((turn) =>
      turn.turn === data.turn
        ? { ...turn, text: turn.text + data.text, thought: turn.thought || data.at, retry: null }
        : turn,
    ),
  }),
  left_out: (exchange, data) => ({ ...exchange, leftOut: data.query }),
  retrying: (exchange, data) => ({
    ...exchange,
    turns: exchange.turns.map((turn) =>
      turn.turn === data.turn
        ? {
            ...turn,
            retry: { tries: data.try, at: data.at, seconds: data.seconds, until: data.until },
          }
        : turn,
    ),
  }),
  tool_calls_start: (exchange, data) => ({
    ...exchange,
    turns: exchange.turns.map((turn) =>
      turn.turn === data.turn
        ? { ...turn, ended: data.at, retry: null, calls: joined(turn.calls, data.calls) }
        : turn,
    ),
    calls: {
      ...exchange.calls,
      ...Object.fromEntries(
        data.calls.map((call) => [
          call.id,
          { ...call, state: "running", began: data.at, seconds: null, preview: "" },
        ]),
      ),
    },
  }),
  tool_result: (exchange, data) => ({
    ...exchange,
    calls: {
      ...exchange.calls,
      [data.id]: {
        ...exchange.calls[data.id],
        id: data.id,
        tool: data.tool,
        state: stateOf(data),
        seconds: data.seconds,
        preview: data.preview,
      },
    },
  }),
  paused: (exchange, data) => ({
    ...exchange,
    status: "paused",
    pause: { calls: data.calls, expiresAt: data.expires_at },
    turns: exchange.turns.map((turn) =>
      turn.turn === data.turn ? { ...turn, ended: data.at, calls: joined(turn.calls, data.calls) } : turn,
    ),
    calls: withStates(exchange.calls, data.calls, "waiting"),
  }),
  resumed: (exchange, data) => ({
    ...exchange,
    status: "running",
    pause: null,
    calls: withStates(exchange.calls, data.decisions, "running"),
  }),
  credits: (exchange, data) => ({
    ...exchange,
    credits: { used: data.used, held: data.held, available: data.available },
    shortage: data.code ? { required: data.required, available: data.available } : exchange.shortage,
  }),
  answer: (exchange, data) => ({
    ...exchange,
    status: "answered",
    response: data.response,
    sources: data.sources,
    stop: data.stop,
    turnCount: data.turns,
    turns: closed(exchange.turns, data.at),
  }),
  done: (exchange, data) => withChat({ ...exchange, turns: closed(exchange.turns, data.at) }, data),
  error: (exchange, data) => ({
    ...exchange,
    status: "failed",
    error: { code: data.code, message: data.message },
    turns: closed(exchange.turns, data.at),
    calls: halted(exchange.calls),
  }),
};

/** The wait behind which a turn is asked again: it counts until the first piece of an answer. */
const asked = (before) =>
  before?.retry ? { retry: { ...before.retry, tries: before.retry.tries + 1, seconds: 0 } } : {};

const closed = (turns, at) => turns.map((turn) => (turn.ended ? turn : { ...turn, ended: at }));

/** The ids of a turn's calls, those that were known first. */
const joined = (ids, calls) => [...new Set([...ids, ...calls.map((call) => call.id)])];

const withStates = (calls, changed, state) => ({
  ...calls,
  ...Object.fromEntries(changed.map(({ id, ...call }) => [id, { ...calls[id], ...call, id, state }])),
});

const halted = (calls) =>
  Object.fromEntries(
    Object.entries(calls).map(([id, call]) => [
      id,
      call.state === "running" || call.state === "waiting" ? { ...call, state: "stopped" } : call,
    ]),
  );

/** The exchange after an event; unknown events change nothing. */
export function reduce(exchange, { event, data }) {
  return Object.hasOwn(HANDLERS, event) ? HANDLERS[event](exchange, data) : exchange;
}

/** What is waited for; the same object while it is the same, whose card may have half an answer in it. */
function pauseNow(before, now) {
  if (!now) return null;
  const pause = { calls: now.calls, expiresAt: now.expires_at };
  const key = ({ calls, expiresAt }) => [expiresAt, ...calls.map((call) => call.id)].join();
  return before && key(before) === key(pause) ? before : pause;
}

/** The exchange with the chat object's values. */
export function withChat(exchange, chat) {
  const ended = chat.status === "cancelled" || chat.status === "failed";
  return {
    ...exchange,
    chatId: chat.chat_id,
    messageId: chat.message_id,
    status: chat.status,
    response: chat.response ?? (ended ? null : exchange.response),
    sources: chat.sources,
    stop: chat.stop ?? "",
    category: chat.refusal?.category ?? "",
    turnCount: chat.turns,
    memory: chat.memory,
    fictional: chat.fictional,
    error: chat.error ?? null,
    pause: pauseNow(exchange.pause, chat.pause),
    credits: { used: chat.credits_used, held: 0, available: chat.credits_remaining },
    calls: ended ? halted(exchange.calls) : exchange.calls,
  };
}

/** The exchanges of a conversation from its full track, in order. */
export function fromRecords(records) {
  const groups = new Map();
  for (const record of records) {
    const query = record.record_id.split("-")[0];
    groups.set(query, [...(groups.get(query) ?? []), record]);
  }
  return [...groups.values()].map(fromGroup);
}

/** Whether a record is a text file. */
export const isFile = (record) => /-f\d+$/.test(record.record_id);

function fromGroup(records) {
  let exchange = { ...ask("", []), status: "running" };
  let thought = { thinking: "", text: "" };
  for (const record of records) {
    if (record.type === "tool_call") {
      exchange = withCall(exchange, record, thought);
      thought = { thinking: "", text: "" };
    } else if (record.role === "user") {
      if (isFile(record)) continue; // its question lists it
      exchange = {
        ...exchange,
        messageId: record.record_id,
        chatId: record.chat_id ?? "",
        question: record.content,
        continues: record.continues ?? "",
        attachments: placed(record.attachments, record.record_id),
      };
    } else if (record.record_id.endsWith("-r")) {
      exchange = withResponse(exchange, record);
      const { thinking, text } = thought; // of no call
      if (thinking || text)
        exchange = {
          ...exchange,
          turns: [...exchange.turns, storedTurn(exchange.turns.length + 1, thought)],
        };
    } else {
      thought = partsOf(record);
    }
  }
  return exchange;
}

/** What a record of the full track says before its tools or its answer: `{thinking, text}`. */
export function partsOf({ content, thinking_characters: thought = 0 }) {
  const characters = [...content];
  return {
    thinking: characters.slice(0, thought).join(""),
    text: characters.slice(thought).join("").trimStart(),
  };
}

const storedTurn = (turn, thought) => ({
  turn,
  maxTurns: 0,
  final: false,
  ...thought,
  thought: "",
  began: "",
  ended: "",
  calls: [],
});

/** `unknown`: it had begun, and nobody knows whether it took effect. */
const stateOf = ({ status, is_error: failed }) =>
  status === "unknown" || status === "declined" ? status : failed ? "error" : "ok";

function withCall(exchange, record, thought) {
  const last = exchange.turns.at(-1);
  const turn = last?.turn === record.turn ? last : storedTurn(record.turn, thought);
  const call = {
    id: record.record_id,
    tool: record.tool,
    input: record.input,
    state: stateOf(record),
    seconds: record.seconds,
    preview: record.result.slice(0, 5000),
    attachments: placed(record.attachments, record.record_id),
  };
  return {
    ...exchange,
    turns: [
      ...exchange.turns.filter((turn) => turn !== last || last.turn !== record.turn),
      { ...turn, calls: [...turn.calls, record.record_id] },
    ],
    calls: { ...exchange.calls, [record.record_id]: call },
  };
}

function withResponse(exchange, record) {
  // a cancelled chat's text is kept with its stop reason; without one there is no answer
  const none = record.stop ? null : NO_ANSWER.exec(record.content);
  const cancelled = record.stop === "cancelled";
  return {
    ...exchange,
    responseId: record.record_id,
    stop: record.stop ?? "",
    leftOut: record.left_out ?? exchange.leftOut,
    status: none ? none[1] : cancelled ? "cancelled" : "done",
    response: none ? null : record.content,
    // the answer took one more model call than the turns with tools
    turnCount: exchange.turns.length + (none || cancelled ? 0 : 1),
  };
}
