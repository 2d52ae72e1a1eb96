"""Permissions on S3 Vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.infra.rules.registry import many, named, of_kind, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.infra.rules.registry import Template


@rule(
    {
        "Policy": {
            "Type": "AWS::IAM::Policy",
            "Properties": {
                "PolicyDocument": {
                    "Statement": [
                        {"Effect": "Allow", "Action": "s3vectors:QueryVectors", "Resource": "arn:index/a"},
                        {"Effect": "Allow", "Action": "s3vectors:GetVectors", "Resource": "arn:index/b"},
                    ]
                }
            },
        }
    }
)
def what_queries_vectors_may_get_them(template: Template) -> Iterator[str]:
    """Amazon S3 API Reference, QueryVectors, "Permissions": a query with a filter is refused with a 403 without
    ``s3vectors:GetVectors``. A search in one course or lesson filters."""
    for key, policy in of_kind(template, "AWS::IAM::Policy").items():
        may: dict[str, set[str]] = {}
        for statement in policy["PolicyDocument"]["Statement"]:
            for action in many(statement["Action"]):
                may.setdefault(action, set()).update(map(named, many(statement["Resource"])))
        if may.get("s3vectors:QueryVectors", set()) - may.get("s3vectors:GetVectors", set()):
            yield f"{key} may query vectors, but not with a filter"
