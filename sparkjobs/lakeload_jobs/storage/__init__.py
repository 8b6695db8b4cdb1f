"""S3 objects: conditional writes, multipart uploads, responses, backoff."""
