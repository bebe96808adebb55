"""Recurrent networks: RNN, LSTM and GRU over whole sequences."""
