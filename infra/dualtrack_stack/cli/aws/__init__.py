"""``dualtrack aws up | doctor | smoke | down | prune``: a stage in an AWS account."""
