"""The subcommands of `sash`, a module each."""
