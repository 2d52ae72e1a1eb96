"""Tests of the plug-in `knowledge`."""
