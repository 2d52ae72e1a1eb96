"""The answers about collections, in the form of `dualtrack.answers`; loaded for their documentation alone."""

from collections.abc import Mapping, Sequence
from typing import Annotated, NotRequired, TypedDict

from dualtrack.answers import Count, ListPage, Time
from dualtrack.vocabulary import FileState, JobStatus, Outcome


class Collection(TypedDict):
    """A collection of documents."""

    collection_id: Annotated[str, "Its id"]
    name: Annotated[str, "Its name"]
    description: Annotated[str, "What it holds"]
    shared: Annotated[bool, "Whether it is the stage's; else it is the user's own"]
    created_at: Annotated[Time, "When it was made"]
    updated_at: Annotated[Time | None, "When a document was last changed; null: it never had one"]
    counts: Annotated[Mapping[str, Count], "What it has: documents, chunks, pages, bytes"]


class Collections(ListPage):
    """A page of collections."""

    collections: Annotated[Sequence[Collection], "The stage's, then the user's own, the oldest first"]


class CollectionFile(TypedDict):
    """A file of a job. A refused one has a reason; one that was read, the document's title and what was left out."""

    name: Annotated[str, "Its name"]
    state: Annotated[FileState, "Its state"]
    reason: NotRequired[Annotated[str, "Why it was refused, and what to do"]]
    title: NotRequired[Annotated[str, "The document's title"]]
    document_id: NotRequired[Annotated[str, "The document"]]
    counts: NotRequired[Annotated[Mapping[str, Count], "What was read: chunks, pages, bytes"]]
    left_out: NotRequired[Annotated[str, "What has no text here, such as `2 pictures, 1 equation`"]]
    outcome: NotRequired[Annotated[Outcome, "What it changed; only once the job is done"]]


class CollectionJob(TypedDict):
    """A job that changes a collection."""

    job_id: Annotated[str, "The job"]
    status: Annotated[JobStatus, "Its status; `done` and `failed` are final"]
    created_at: Annotated[Time, "When it was created"]
    ended_at: Annotated[Time | None, "When it ended; null before that"]
    removes: Annotated[Sequence[str], "Titles of documents to remove"]
    embedded: Annotated[Count, "Passages that have vectors so far"]
    to_embed: Annotated[Count, "Passages that need vectors"]
    files: Annotated[Sequence[CollectionFile], "Its files"]
    url: Annotated[str, "The path of the job"]
    error: NotRequired[Annotated[str, "Why it failed"]]


class CollectedDocument(TypedDict):
    """A document of a collection."""

    document_id: Annotated[str, "Its id, which stays when it is replaced"]
    title: Annotated[str, "Its title"]
    name: Annotated[str, "The file that it came from"]
    kind: Annotated[str, "What it is, such as `pdf`"]
    counts: Annotated[Mapping[str, Count], "What it has: chunks, pages, bytes"]
    left_out: Annotated[str, "What has no text here; empty for nothing"]
    updated_at: Annotated[Time, "When it was last changed"]


class CollectedDocuments(ListPage):
    """A page of documents."""

    documents: Annotated[Sequence[CollectedDocument], "In the order in which they were added"]


class DocumentText(CollectedDocument):
    """A document with a piece of its text."""

    text: Annotated[str, "About 8,000 characters"]
    begin: Annotated[Count, "Where the piece begins, in passages from 0"]
    following: Annotated[Count | None, "The `from` of the next piece; null: this is the last"]
