"""Tables: a specification in, values with bounds out; nothing here draws or parses arguments."""
