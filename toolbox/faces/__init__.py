"""The door's faces: REST now, each a thin translation to `toolbox.door`."""
