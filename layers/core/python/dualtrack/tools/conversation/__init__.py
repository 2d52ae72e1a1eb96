"""`search_conversation`: searches the records of the current conversation by words and meaning (CONTRACT 6).

``spec`` is light and may be imported anywhere; the other modules load numpy, and only the search function uses them.
"""
