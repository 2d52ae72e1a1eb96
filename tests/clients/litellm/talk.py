"""A conversation by litellm's SDK: ``talk.py litellm``, with a `Story` as JSON on standard input.

It runs in the environment of this folder's lock, without the project. It prints what its user saw.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else the import downloads prices


def talk(story: dict[str, Any]) -> list[str]:
    """The program keeps the messages and sends them all, each time."""
    import litellm

    given = {"model": f"openai/{story['model']}", "api_base": story["url"], "api_key": story["key"]}
    messages: list[Any] = [{"role": "system", "content": story["system"]}]
    answers: list[str] = []
    for question in story["questions"]:
        messages.append({"role": "user", "content": question["text"]})
        if question["stream"]:
            stream = litellm.completion(**given, messages=messages, stream=True)
            answer = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
        else:
            answer = litellm.completion(**given, messages=messages).choices[0].message.content
        messages.append({"role": "assistant", "content": answer})
        answers.append(answer)
    return answers


if __name__ == "__main__":
    print(json.dumps(talk(json.load(sys.stdin))))
