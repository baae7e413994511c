# The image contains one static program and nothing else. Builds with BuildKit and with the classic
# builder.

FROM rust:1-bookworm AS tools
RUN apt-get update && apt-get install -y --no-install-recommends cmake libclang-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /src

# The workspace with empty code: the layer with compiled dependencies then changes only with the
# manifests.
FROM tools AS manifests
COPY . .
RUN find . -type f ! -name 'Cargo.*' \
        ! -regex '\./crates/[^/]+/\(build\|src/\(main\|lib\)\|\(benches\|examples\|tests\)/[^/]+\)\.rs' -delete \
 && find . -type d -empty -delete \
 && for file in $(find crates -name '*.rs'); do echo 'fn main() {}' > "$file"; done
# The classic builder leaves an image of each stage; scripts/image removes older ones by this name.
LABEL rondel.stage=manifests

FROM tools AS build
# Link everything statically, including the C library. Naming the target exempts build scripts and
# macros. Packed relocations take 1.2 MB less.
ENV RUSTFLAGS="-C target-feature=+crt-static -C link-arg=-Wl,-z,pack-relative-relocs"
# Without `rondel repl` and `rondel lsp`: nobody writes specifications in a container.
ENV FEATURES="--no-default-features --features metrics,sqlite"
# Further features: `--build-arg WITH=kafka`.
ARG WITH
RUN rustc -vV | sed -n 's/^host: //p' > /target
COPY --from=manifests /src .
RUN cargo build --release --locked --package rondel $FEATURES${WITH:+,$WITH} --target "$(cat /target)"
COPY . .
# The build context has no git history: `--build-arg RONDEL_COMMIT=…` names the commit.
ARG RONDEL_COMMIT
# cargo compares modification times: the copied files must be newer than the compiled ones.
RUN find crates -name '*.rs' -exec touch {} + \
 && cargo build --release --locked --package rondel $FEATURES${WITH:+,$WITH} --target "$(cat /target)" \
 && cp "target/$(cat /target)/release/rondel" /rondel
LABEL rondel.stage=build

FROM scratch
LABEL org.opencontainers.image.title="Rondel" \
      org.opencontainers.image.description="Runtime verification for publish/subscribe systems" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /src/LICENSE /LICENSE
COPY --from=build /rondel /rondel
USER 65532:65532
ENTRYPOINT ["/rondel"]
