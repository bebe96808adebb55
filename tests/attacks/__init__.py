"""Hostile files, made at test time: each must be refused clearly and with little memory."""
