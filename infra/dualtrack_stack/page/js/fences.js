/**
 * A message with fenced code, as pieces: `{text}` or `{code, language}`. All other text is plain. Pure.
 */
export function piecesOf(message) {
  const pieces = [];
  let lines = []; // of the current piece
  let fence = null;
  const end = () => {
    const text = lines.join("\n");
    if (fence) pieces.push({ code: text, language: fence.language });
    else if (text.trim()) pieces.push({ text: text.replace(/^\n+/, "").trimEnd() });
    lines = [];
  };
  for (const line of message.split("\n")) {
    const marker = fenceOf(line);
    const turns = fence ? marker && closes(marker, fence) : marker;
    if (turns) {
      end();
      fence = fence ? null : marker;
    } else lines.push(line);
  }
  if (fence || lines.length > 0) end();
  return pieces;
}

/** `{sign, length, language}` of a line that can begin or end fenced code, by CommonMark. */
function fenceOf(line) {
  const [sign] = /^ {0,3}(?=([`~])\1\1)/.test(line) ? line.trimStart() : "";
  if (!sign) return null;
  const rest = line.trimStart();
  let length = 0;
  while (rest[length] === sign) length += 1;
  const info = rest.slice(length).trim();
  if (sign === "`" && info.includes("`")) return null;
  return { sign, length, info, language: info.split(/\s/, 1)[0] };
}

const closes = (marker, open) => marker.sign === open.sign && marker.length >= open.length && !marker.info;
