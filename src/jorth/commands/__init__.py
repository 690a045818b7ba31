"""One file a command of `jorth`. Its top level imports click alone, so that help stays light."""
