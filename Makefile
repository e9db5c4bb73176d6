# For those who expect one: cargo builds, scripts/install installs.

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
DESTDIR ?=
CARGO ?= cargo

where = --prefix "$(abspath $(PREFIX))" --libdir "$(abspath $(LIBDIR))" $(if $(DESTDIR),--destdir "$(abspath $(DESTDIR))")

.PHONY: all demo test check install install-library uninstall clean help

all:  ## the program overlock, the drop-in and the C library, in target/release
	$(CARGO) build --release --package overlock-cli
	$(CARGO) build --release --package overlock-preload
	$(CARGO) build --release --package overlock-c

demo:  ## a program before and after, and its hot lock
	$(CARGO) run --release

test check:  ## the product's tests
	$(CARGO) test

install:  ## everything, below DESTDIR and PREFIX (/usr/local)
	scripts/install $(where)

install-library:  ## the library for C and C++ alone
	scripts/install --library $(where)

uninstall:  ## removes what install has installed, with the same variables
	scripts/install --uninstall $(where)

clean:  ## removes the target directory
	$(CARGO) clean

help:  ## this list
	@sed -n 's/^\([a-z -]*\):  ## \(.*\)/\1\t\2/p' Makefile | expand -t 20
	@echo 'Variables: PREFIX, LIBDIR, DESTDIR, CARGO.'
