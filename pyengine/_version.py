"""The version of the package and the name under which pip installs it, in this one place."""

DISTRIBUTION = "pyengine-dp"  # the index's pyengine is somebody else's
__version__ = "0.1.0"
