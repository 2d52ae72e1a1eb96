"""Vectors of courses in S3 Vectors: a stage has a bucket for them, and permissions on it, only if that is set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.storage.vector_indexes import index_name

from tests.drivers.templates import Stage, readable
from tests.infra.rules.registry import VARIANTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

WITH_VECTORS = "prod with everything set"
INDEXES = f"dualtrack-prod-course-vectors-arn/index/{index_name('courses', '*')}"


@pytest.fixture(scope="module")
def stage(assembly: Callable[..., Path]) -> Stage:
    return Stage("prod", assembly(*VARIANTS[WITH_VECTORS]))


def rights(stage: Stage) -> Iterator[tuple[str, str, str]]:
    """(function, action, resource) of every permission on vectors."""
    for key, policy in stage.resources("Chat", "AWS::IAM::Policy").items():
        for statement in policy["PolicyDocument"]["Statement"]:
            for action in _many(statement["Action"]):
                if action.startswith("s3vectors:"):
                    yield from (
                        (key.split("Role")[0], action.removeprefix("s3vectors:"), readable(resource))
                        for resource in _many(statement["Resource"])
                    )


def _many(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_each_function_may_do_its_part_to_indexes_of_courses(stage: Stage) -> None:
    """A query that filters needs GetVectors too (Amazon S3 API Reference, QueryVectors, "Permissions")."""
    assert set(rights(stage)) == {
        ("Ingest", "CreateIndex", INDEXES),
        ("Ingest", "PutVectors", INDEXES),
        ("Search", "QueryVectors", INDEXES),
        ("Search", "GetVectors", INDEXES),
        ("Sweep", "ListIndexes", "dualtrack-prod-course-vectors-arn"),
        ("Sweep", "DeleteIndex", INDEXES),
    }


def test_the_bucket_outlives_the_stack_of_prod_and_its_name_is_an_output(stage: Stage) -> None:
    ((key, bucket),) = (
        (key, resource)
        for key, resource in stage.template("Vectors")["Resources"].items()
        if resource["Type"].startswith("AWS::S3Vectors")
    )
    assert (bucket["Type"], bucket["DeletionPolicy"]) == (
        "AWS::S3Vectors::VectorBucket",
        "RetainExceptOnCreate",
    )
    export = stage.template("Vectors")["Outputs"]
    (arn,) = (
        output["Value"]
        for output in export.values()
        if output.get("Export", {}).get("Name") == "dualtrack-prod-course-vectors-arn"
    )
    assert arn == {"Fn::GetAtt": [key, "VectorBucketArn"]}
    assert set(bucket_settings(stage)) == {"Ingest", "Search", "Sweep"}
    imported = {"Fn::ImportValue": "dualtrack-prod-course-vectors-arn"}
    for value in bucket_settings(stage).values():
        assert value == {"Fn::Select": [1, {"Fn::Split": ["bucket/", imported]}]}


def bucket_settings(stage: Stage) -> dict[str, Any]:
    """The bucket settings of each function."""
    functions = stage.resources("Chat", "AWS::Lambda::Function")
    variables = {
        key: function.get("Environment", {}).get("Variables", {}) for key, function in functions.items()
    }
    return {
        key.split("Function")[0]: environment["COURSE_VECTORS"]
        for key, environment in variables.items()
        if "COURSE_VECTORS" in environment
    }


def test_without_the_setting_nothing_of_it_exists(aws_stage: Stage) -> None:
    assert not (aws_stage.folder / "Vectors.template.json").exists()
    assert list(rights(aws_stage)) == []
    assert set(bucket_settings(aws_stage).values()) == {""}
