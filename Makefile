# SPDX-License-Identifier: Apache-2.0
# The front door. `make help` lists the doors.
BUILD ?= build
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
MESON_TEST = meson test -C $(1) --print-errorlogs --no-rebuild
export LC_ALL = C.UTF-8

.PHONY: all help deps build run stop test check asan coverage fuzz format format-check install \
        bench test-rest quality faults sim seeds test-web test-vm test-compat test-hosts test-accounting clean

all: build

help:
	@echo 'make run        build, start a one-node cluster in .run/, run a job, say how to go on'
	@echo 'make stop       end that cluster'
	@echo 'make test       everything CI runs: unit, layers, t/ with real daemons, sanitizers'
	@echo 'make check      unit and tree tests only: seconds'
	@echo 'make asan       tests under address and undefined-behaviour sanitizers (build-asan/)'
	@echo 'make coverage   line coverage of the tests (build-coverage/)'
	@echo 'make fuzz       libFuzzer on every parser, FUZZ_SECONDS=60 each'
	@echo 'make sim        the real controller on simulated time and nodes, SEED=1..1000'
	@echo 'make seeds      random histories of the planner, many more than the unit tests run: SEEDS=400'
	@echo 'make test-web   the web page in a real browser; installs chromium and two packages of npm'
	@echo 'make test-vm    limits of jobs in a virtual machine with all cgroup controllers'
	@echo 'make test-hosts the installed cluster on hosts made of namespaces, from the documents; T=NAME for one'
	@echo 'make test-accounting  the tests of accounting on SQLite, then on a private PostgreSQL'
	@echo 'make test-compat programs linked with libslurm, fetched from Debian, with our library'
	@echo 'make test-rest  the REST API with the testers that are installed: httptools, h11, schemathesis'
	@echo 'make bench      figures, each with its floor of the same run'
	@echo 'make quality    what the planner makes of traces (Q1, Q2, Q3), beside what others make of them'
	@echo 'make conformance  how much of Slurm the commands are: options, fields, verbs, keys, recorded outputs'
	@echo 'make faults     what happens when things break, counted; F=F1 for one of them'
	@echo 'make format     clang-format everything'
	@echo 'make install    PREFIX=/usr/local; DESTDIR honoured'

deps:
	@tools/deps --test

$(BUILD)/build.ninja:
	@tools/deps
	@meson setup $(BUILD) --prefix=$(PREFIX) >/dev/null

build: $(BUILD)/build.ninja
	@tools/build $(BUILD)

run: build
	@tools/run-demo $(BUILD)

stop:
	@$(BUILD)/bin/spur down --dir .run --remove

# A build made before the test tools were there has no unit tests.
check: deps $(BUILD)/build.ninja
	@grep -q test-base- $(BUILD)/build.ninja || meson setup --reconfigure $(BUILD) >/dev/null
	@tools/build $(BUILD)
	@$(call MESON_TEST,$(BUILD)) --suite unit --suite tree

test:
	@tools/deps --test
	@tools/test-all

asan: deps
	@[ -d build-asan ] || meson setup build-asan -Db_sanitize=address,undefined -Db_lundef=false >/dev/null
	@ninja -C build-asan --quiet
	@$(call MESON_TEST,build-asan) --suite unit

test-compat: build
	@SPUR_BUILD=$(CURDIR)/$(BUILD) tools/deps --compat
	@SPUR_BUILD=$(CURDIR)/$(BUILD) t/run t57-api
	@SPUR_BUILD=$(CURDIR)/$(BUILD) t/run t58-spank/sources

# What reads and writes the history, once with each database.
ACCOUNTING = t12- t21- t22- t24- t25- t60-faults/accounting t62-
test-accounting: build
	@SPUR_BUILD=$(CURDIR)/$(BUILD) t/run --logs $(BUILD)/logs/t-sqlite $(ACCOUNTING)
	@SPUR_T_DATABASE=postgresql SPUR_BUILD=$(CURDIR)/$(BUILD) t/run --logs $(BUILD)/logs/t-postgresql $(ACCOUNTING)

test-web: build
	@tools/test-web $(BUILD)

test-vm: build
	@SPUR_BUILD=$(CURDIR)/$(BUILD) tools/test-vm

test-hosts: build
	@SPUR_BUILD=$(CURDIR)/$(BUILD) t/run --dir t/hosts --logs $(BUILD)/logs/t-hosts $(T)

fuzz: deps
	@tools/fuzz $(FUZZ_SECONDS)

test-rest: build
	@SPUR_BUILD=$(CURDIR)/$(BUILD) tools/test-rest

bench: build
	@bench/run $(BUILD)

quality: build
	@bench/sim $(BUILD)

faults: build
	@SPUR_BUILD=$(CURDIR)/$(BUILD) tools/faults $(F)

conformance: build
	@tools/conformance $(BUILD)

SEED ?= 1..1000
sim: build
	@$(BUILD)/sim/spur-faultsim --seeds $(SEED)

SEEDS ?= 400
seeds: build
	@SPUR_TEST_SEEDS=$(SEEDS) $(call MESON_TEST,$(BUILD)) -t 20 sched-search sched-places sched-preempt sched-het_preempt

coverage: deps
	@[ -d build-coverage ] || meson setup build-coverage -Db_coverage=true >/dev/null
	@ninja -C build-coverage --quiet
	@-$(call MESON_TEST,build-coverage) --suite unit # jobs of other users cannot write their counts
	@ninja -C build-coverage coverage-text && cat build-coverage/meson-logs/coverage.txt

format:
	@git ls-files -co --exclude-standard 'src/*.[ch]' 'sim/*.[ch]' 'bench/*.[ch]' 'fuzz/*.[ch]' | grep -v _list.h | xargs -r clang-format-14 -i

format-check:
	@git ls-files -co --exclude-standard 'src/*.[ch]' 'sim/*.[ch]' 'bench/*.[ch]' 'fuzz/*.[ch]' | grep -v _list.h | xargs -r clang-format-14 --dry-run -Werror

install: build
	@meson introspect $(BUILD) --buildoptions | python3 -c 'import json, sys; sys.exit({o["name"]: o["value"] for o in json.load(sys.stdin)}["prefix"] != "$(PREFIX)")' || \
	    { meson configure $(BUILD) --prefix=$(PREFIX) && ninja -C $(BUILD) --quiet; } # it was set up for another
	@meson install -C $(BUILD) --no-rebuild --quiet $(if $(DESTDIR),--destdir $(DESTDIR))

clean:
	@rm -rf build build-*
