# A machine for learning and grading: Debian with what `make` does not install by itself. The course is not in it;
# it is mounted, so that work, grades and .venv stay in its folder:
#     docker build --tag open-the-hood - < Dockerfile
#     docker run --rm -it --publish 127.0.0.1:8888:8888 --volume "$PWD":/course \
#         --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined \
#         open-the-hood make lab
# The three options let bubblewrap make sandboxes, in which grading runs learners' code; `make lab` needs none.
# `python -m grader doctor` says whether they suffice. Not tried with Docker yet: these steps, `make demo`, `doctor`
# and `make lab` were run on a fresh Debian 13, as this user.
FROM debian:trixie-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap ca-certificates g++ git make python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home learner \
    && install --directory --owner learner /course /home/learner/.jupyter \
    && echo 'c.ServerApp.ip = "0.0.0.0"' > /home/learner/.jupyter/jupyter_server_config.py
USER learner
ENV TORCH=cpu
WORKDIR /course
CMD ["make", "lab"]
