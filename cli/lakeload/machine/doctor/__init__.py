"""What of this machine a load would stumble over: findings, each with the command that mends it."""
