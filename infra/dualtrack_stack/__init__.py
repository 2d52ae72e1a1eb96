"""The infrastructure of dualtrack: CDK stacks, the workflow, and the local stack that runs them."""
