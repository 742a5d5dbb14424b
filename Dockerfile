# Two images. The first is for learners on a JupyterHub. It has the learners' archive without the rest of the project;
# docs/how-to/jupyterhub.md says how to use it. JUPYTERHUB is the hub's own version.
#     python -m hood bundle
#     docker build --target learner --build-arg JUPYTERHUB=6.1.1 --tag open-the-hood-learner --file Dockerfile dist
# This image has not been built with Docker yet. Its steps were run in a fresh folder, until a server without a hub ran.
FROM debian:trixie-slim AS learner
ARG JUPYTERHUB
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates g++ python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home learner
COPY open-the-hood.zip /opt/
RUN cd /opt && python3 -m venv learner && python3 -m zipfile -e open-the-hood.zip . \
    && learner/bin/pip install --no-cache-dir \
        -r open-the-hood/lock/torch-cpu.txt -r open-the-hood/lock/packages.txt \
    && learner/bin/pip install --no-cache-dir "jupyterhub==$JUPYTERHUB" \
    && cd open-the-hood && ../learner/bin/python -m hood.learner.exposed_answers
USER learner
ENV PATH=/opt/learner/bin:$PATH PYTHONPATH=/home/learner/open-the-hood
ENV JUPYTER_CONFIG_PATH=/home/learner/open-the-hood/hood/learner/jupyter
WORKDIR /home/learner
# The archive's changes come into the learner's copies. The learner's answers stay.
CMD ["sh", "-c", "python -m zipfile -e /opt/open-the-hood.zip . && (cd open-the-hood && python -m hood.learner.copies); exec jupyterhub-singleuser"]

# The second image is a machine for learning and grading: Debian with the packages that `make` needs. The course is
# mounted, so that work, grades and .venv stay in its folder:
#     docker build --tag open-the-hood - < Dockerfile
#     docker run --rm -it --publish 127.0.0.1:8888:8888 --volume "$PWD":/course \
#         --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined \
#         open-the-hood make lab
# The three options let bubblewrap make sandboxes, in which grading runs learners' code; `make lab` needs none.
# `python -m hood doctor` says whether they suffice. This image, too, has not been built with Docker yet. Its steps,
# `make demo`, `doctor` and `make lab` were run on a fresh Debian 13, as this user.
FROM debian:trixie-slim AS course
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap ca-certificates g++ git make python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home learner \
    && install --directory --owner learner /course /home/learner/.jupyter \
    && printf '%s\n' \
        'import os' \
        'c.ServerApp.ip = "0.0.0.0"' \
        '# Only the owner of a codespace reaches its port, by this address, so no token is needed.' \
        'if os.environ.get("CODESPACES"):' \
        '    c.IdentityProvider.token = ""' \
        '    c.ServerApp.allow_origin_pat = r"https://[\w-]+\.app\.github\.dev"' \
        > /home/learner/.jupyter/jupyter_server_config.py
USER learner
ENV TORCH=cpu
WORKDIR /course
CMD ["make", "lab"]
