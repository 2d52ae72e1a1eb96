"""Vectors of courses in S3 Vectors: a stage has a bucket for them, and rights on it, if that is set and not
otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.storage.vector_indexes import index_name

from infra.stages import course_index_from
from tests.drivers.templates import STACKS, Stage, readable
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
    """Function, action and resource of everything about vectors."""
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


def test_the_bucket_outlives_the_stack_of_prod_and_its_name_is_told(stage: Stage) -> None:
    ((key, bucket),) = (
        (key, one)
        for key, one in stage.template("Data")["Resources"].items()
        if one["Type"].startswith("AWS::S3Vectors")
    )
    assert (bucket["Type"], bucket["DeletionPolicy"]) == (
        "AWS::S3Vectors::VectorBucket",
        "RetainExceptOnCreate",
    )
    export = stage.template("Data")["Outputs"]
    (arn,) = (
        one["Value"]
        for one in export.values()
        if one.get("Export", {}).get("Name") == "dualtrack-prod-course-vectors-arn"
    )
    assert arn == {"Fn::GetAtt": [key, "VectorBucketArn"]}
    assert set(told(stage)) == {"Ingest", "Search", "Sweep"}
    imported = {"Fn::ImportValue": "dualtrack-prod-course-vectors-arn"}
    for value in told(stage).values():
        assert value == {"Fn::Select": [1, {"Fn::Split": ["bucket/", imported]}]}


def told(stage: Stage) -> dict[str, Any]:
    """What each function is told of the bucket."""
    functions = stage.resources("Chat", "AWS::Lambda::Function")
    given = {key: one.get("Environment", {}).get("Variables", {}) for key, one in functions.items()}
    return {
        key.split("Function")[0]: one["COURSE_VECTORS"]
        for key, one in given.items()
        if "COURSE_VECTORS" in one
    }


def test_otherwise_there_is_nothing_of_it(aws_stage: Stage) -> None:
    kinds = {one["Type"] for stack in STACKS for one in aws_stage.template(stack)["Resources"].values()}
    assert not [kind for kind in kinds if "S3Vectors" in kind]
    assert list(rights(aws_stage)) == []
    assert set(told(aws_stage).values()) == {""}


def test_another_place_is_refused() -> None:
    assert course_index_from({}) == course_index_from({"DUALTRACK_COURSE_INDEX": ""}) == "embedded"
    assert course_index_from({"DUALTRACK_COURSE_INDEX": "s3vectors"}) == "s3vectors"
    with pytest.raises(ValueError, match="DUALTRACK_COURSE_INDEX: opensearch is none of embedded, s3vectors"):
        course_index_from({"DUALTRACK_COURSE_INDEX": "opensearch"})
