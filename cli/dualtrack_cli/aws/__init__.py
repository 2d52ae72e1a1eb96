"""``dualtrack aws up | doctor | smoke | down``: a stage in an AWS account."""
