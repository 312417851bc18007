"""The door's faces, REST, MCP and events: each a thin translation to `toolbox.door`."""
