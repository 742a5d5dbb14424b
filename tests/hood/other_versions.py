"""Make a package look as if another version of it were installed."""


def pretend(folder, package, version):
    """Write what the folder has to hold for that, once it is first on Python's path."""
    info = folder / f"{package}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
