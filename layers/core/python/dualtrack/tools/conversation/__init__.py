"""`search_conversation`: records of the own conversation, found by words and meaning (CONTRACT 6).

``spec`` is light and may be imported anywhere; the others load numpy and belong to the search function alone.
"""
