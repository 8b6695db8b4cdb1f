"""What `init` asks and writes: answers → destination.yml, pipeline.yml and .env. Pure."""
