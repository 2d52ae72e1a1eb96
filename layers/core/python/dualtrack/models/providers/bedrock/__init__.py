"""Claude on Amazon Bedrock, signed with IAM credentials (docs/aws/bedrock.md)."""
