"""IAM policies and trust policies for a destination."""
