"""Simulate another installed version of a package."""


def pretend(folder, package, version):
    """Write a folder that simulates another version if the folder is first on Python's path."""
    info = folder / f"{package}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
