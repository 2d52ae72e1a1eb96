/** Reads the page's address. Pure. */
import { isCorpus } from "./corpora.js";

/**
 * `{conversationId, chatId, messageId, view, corpus, jobId}` of the address; view: chat | memory | corpus.
 */
export function addressOf(hash) {
  const [first = "", rest = ""] = hash.replace(/^#/, "").split("/");
  const nowhere = { conversationId: "", chatId: "", messageId: "", view: "chat", corpus: "", jobId: "" };
  if (isCorpus(first))
    return { ...nowhere, view: "corpus", corpus: first, jobId: /^jb_[0-9a-z]+$/.test(rest) ? rest : "" };
  if (!/^cv_[0-9a-z]+$/.test(first)) return nowhere;
  return {
    ...nowhere,
    conversationId: first,
    chatId: /^ch_[0-9a-z]+$/.test(rest) ? rest : "",
    messageId: /^q\d+$/.test(rest) ? rest : "",
    view: rest === "memory" ? "memory" : "chat",
  };
}
