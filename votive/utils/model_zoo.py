"""`votive.utils.model_zoo`: the older name of `votive.hub.load_state_dict_from_url`."""

from ..hub import load_state_dict_from_url as load_state_dict_from_url

load_url = load_state_dict_from_url
