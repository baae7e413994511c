# The image holds one static program and nothing else. Builds with BuildKit and with the classic builder.

FROM rust:1-bookworm AS tools
RUN apt-get update && apt-get install -y --no-install-recommends cmake libclang-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /src

# The workspace with its code emptied: what the layer with the compiled dependencies hangs on, so that it changes only with the manifests.
FROM tools AS manifests
COPY . .
RUN find . -type f ! -name 'Cargo.*' \
        ! -regex '\./crates/[^/]+/\(build\|src/\(main\|lib\)\|\(benches\|examples\|tests\)/[^/]+\)\.rs' -delete \
 && find . -type d -empty -delete \
 && for file in $(find crates -name '*.rs'); do echo 'fn main() {}' > "$file"; done

FROM tools AS build
# Everything is linked in, the C library too. Naming the target keeps that from build scripts and macros.
ENV RUSTFLAGS="-C target-feature=+crt-static"
RUN rustc -vV | sed -n 's/^host: //p' > /target
COPY --from=manifests /src .
RUN cargo build --release --locked --package rondel --target "$(cat /target)"
COPY . .
# cargo goes by the time of a file: what was just copied must be newer than what was compiled above.
RUN find crates -name '*.rs' -exec touch {} + \
 && cargo build --release --locked --package rondel --target "$(cat /target)" \
 && cp "target/$(cat /target)/release/rondel" /rondel

FROM scratch
LABEL org.opencontainers.image.title="Rondel" \
      org.opencontainers.image.description="Runtime verification for publish/subscribe systems" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /src/LICENSE /LICENSE
COPY --from=build /rondel /rondel
USER 65532:65532
ENTRYPOINT ["/rondel"]
