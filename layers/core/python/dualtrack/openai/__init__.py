"""OpenAI's API over dualtrack's own chats (CONTRACT 10): what its clients send, and what they are answered.

    prompt.py        a request's body → the prompt: the user's message, the program's instructions, what is resent
    client_tools.py  the client's own tools: declared, asked for, decided by their results
    output_format.py the form of an answer → our JSON Schema
    utility.py       small tasks that chat pages have done: titles, tags
    exchanges.py     finding a resent history by the hashes of its exchanges
    place.py         the conversation of a prompt: found, forked, imported or new (the only writes)
    transcript.py    a chat's events → pieces of an answer
    completions.py   pieces → `chat.completion` and its chunks
    refusals.py      refusals in OpenAI's form
    serving.py       what all routes share: who asks, leases, answers that take long
    app.py           the routes, served by the function `stream`

    responses_prompt.py   a request for a response → the same prompt, and what it follows
    responses.py          pieces → `response` and the events of its stream
    responses_app.py      its routes: made, read again, followed from any event, cancelled

Nothing here is loaded before a request to one of these routes.
"""
