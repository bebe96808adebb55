"""Tests of tokenizers, chat templates and streaming text."""
