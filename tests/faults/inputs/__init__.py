"""The fifth layer: hostile inputs. No file, document or file system ends a command by a bug."""
