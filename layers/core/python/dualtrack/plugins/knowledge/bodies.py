"""The bodies about collections."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from dualtrack.api.models import JOB_FILES, FileName, RequestBody, Text, UploadFile, whole
from dualtrack.plugins.knowledge.limits import FILE_BYTES

Name = Annotated[
    Text, Field(min_length=1, max_length=100, description="Its name; case and blanks do not count.")
]
Description = Annotated[Text, Field(max_length=500, description="What it holds.")]
DocumentTitle = Annotated[
    Text,
    Field(min_length=1, max_length=300, description="The document's title; by default what the file says."),
]
Replaces = Annotated[
    Text,
    Field(pattern="^doc_[0-9a-f]{26}$", description="The document whose place it takes, under its title."),
]


class CollectionBody(RequestBody):
    """A new collection."""

    name: Name
    description: Description = ""
    shared: Annotated[bool, Field(description="The stage's own, which agents name; for administrators.")] = (
        False
    )


class CollectionChange(RequestBody):
    """What is to be otherwise."""

    name: Annotated[Name | None, Field(description="Another name.")] = None
    description: Annotated[Description | None, Field(description="Another description.")] = None


class DocumentFile(UploadFile):
    """A file to upload."""

    size: Annotated[int, Field(ge=1, le=FILE_BYTES, description="Its size in bytes."), BeforeValidator(whole)]
    title: Annotated[DocumentTitle | None, Field(description="The document's title.")] = None
    replaces: Annotated[Replaces | None, Field(description="The document whose place it takes.")] = None


class DocumentsBody(RequestBody):
    """The files to upload."""

    files: Annotated[
        list[DocumentFile], Field(min_length=1, max_length=JOB_FILES, description="The files to upload.")
    ]


class UploadedDocument(RequestBody):
    """An uploaded file."""

    upload_id: Annotated[
        str,
        Field(
            pattern="^up_[0-9a-v]{26}_[0-9a-f]{64}$", description="The id from the answer about the upload."
        ),
    ]
    name: FileName
    title: Annotated[DocumentTitle | None, Field(description="The document's title.")] = None
    replaces: Annotated[Replaces | None, Field(description="The document whose place it takes.")] = None


class DocumentsJobBody(RequestBody):
    """The uploaded files to read."""

    files: Annotated[
        list[UploadedDocument], Field(min_length=1, max_length=JOB_FILES, description="The files to read.")
    ]
