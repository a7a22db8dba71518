"""The two config files: unknown, missing or unsupported values are refused by code."""

from laya_convert.architecture import read_architecture
from support import FolderTest, make_checkpoint


class Configs(FolderTest):
    def read(self, encoder=None, agent=None):
        self.count = getattr(self, "count", 0) + 1
        paths = make_checkpoint(self.folder / str(self.count), encoder=encoder, agent=agent)
        return read_architecture(paths["encoder_config"], paths["agent_config"])

    def refused(self, code, encoder=None, agent=None):
        self.assertEqual(self.code_of(lambda: self.read(encoder, agent)), code)

    def test_reads_laya_tiny(self):
        arch = self.read()
        self.assertEqual((arch.hidden, arch.intermediate, arch.vocab, arch.heads), (128, 192, 3072, 2))
        self.assertEqual([kind[0] for kind in arch.layers], ["f", "s", "s", "f"])
        self.assertEqual(arch.rope_bases, {"full_attention": 160000.0, "sliding_attention": 10000.0})
        self.assertEqual((arch.window, arch.head_layers, arch.actions, arch.max_length), (32, 2, 2, 256))

    def test_refuses_unknown_encoder_keys(self):
        # B04
        for key in ("rope_params", "sliding_window", "attention_temperature", "__proto__"):
            self.refused("CONFIG_KEY_UNKNOWN", lambda config, key=key: config.update({key: 1}))

    def test_ignores_keys_that_cannot_change_the_graph(self):
        more = {
            "head_dim": 64,
            "pruned_heads": {},
            "chunk_size_feed_forward": 0,
            "dtype": "float32",
            "gradient_checkpointing": False,
            "num_labels": 2,
        }
        self.assertEqual(self.read(lambda config: config.update(more)), self.read())

    def test_refuses_missing_architecture_keys(self):
        # B04
        for key in (
            "hidden_size", "intermediate_size", "vocab_size", "num_hidden_layers", "num_attention_heads",
            "local_attention", "norm_eps",
        ):  # fmt: skip
            self.refused("CONFIG_KEY_MISSING", lambda config, key=key: config.pop(key))
        self.refused("CONFIG_KEY_MISSING", agent=lambda config: config.pop("head_layers"))
        self.refused(
            "CONFIG_KEY_MISSING", lambda config: [config.pop("layer_types"), config.pop("global_attn_every_n_layers")]
        )
        self.refused("UNSUPPORTED_ARCHITECTURE", lambda config: config.pop("model_type"))
        self.refused("UNSUPPORTED_ARCHITECTURE", lambda config: config.pop("hidden_activation"))

    def test_refuses_what_the_graph_does_not_implement(self):
        for change in (
            {"model_type": "bert"}, {"hidden_activation": "relu"}, {"attention_bias": True}, {"mlp_bias": True},
            {"norm_bias": 1}, {"attention_bias": 0}, {"rope_scaling": {"type": "yarn"}}, {"layer_norm_eps": 1e-6},
            {"position_embedding_type": "relative_key"}, {"num_attention_heads": 4},
            {"head_dim": 32}, {"is_decoder": True}, {"quantization_config": {}}, {"chunk_size_feed_forward": False},
            {"layer_types": ["full_attention", "full_attention", "chunked_attention", "full_attention"]},
        ):  # fmt: skip
            self.refused("UNSUPPORTED_ARCHITECTURE", lambda config, change=change: config.update(change))

    def test_refuses_values_of_the_wrong_kind(self):
        for change in (
            {"hidden_size": "128"}, {"hidden_size": True}, {"vocab_size": 0}, {"num_hidden_layers": 4.0},
            {"norm_eps": 0}, {"norm_eps": None}, {"local_attention": -1}, {"layer_types": ["full_attention"]},
            {"layer_types": "full_attention"}, {"rope_parameters": {"full_attention": {"rope_theta": 1e4}}},
            {"rope_parameters": {"full_attention": {}, "sliding_attention": {}}},
        ):  # fmt: skip
            self.refused("CONFIG_VALUE_INVALID", lambda config, change=change: config.update(change))

    def test_refuses_rope_it_does_not_know(self):
        def set_rope(entry):
            return lambda config: config["rope_parameters"].update(entry)

        self.refused("UNSUPPORTED_ARCHITECTURE", set_rope({"full_attention": {"rope_theta": 1e4, "rope_type": "yarn"}}))
        self.refused("UNSUPPORTED_ARCHITECTURE", set_rope({"full_attention": {"rope_theta": 1e4, "factor": 2}}))
        self.refused("UNSUPPORTED_ARCHITECTURE", set_rope({"chunked_attention": {"rope_theta": 1e4}}))
        self.refused("UNSUPPORTED_ARCHITECTURE", lambda config: config.update(global_rope_theta=1e4))

    def test_refuses_prompts_longer_than_the_encoder_takes(self):
        self.refused("CONFIG_VALUE_INVALID", agent=lambda config: config.update(max_len=513))
        self.assertEqual(self.read(lambda config: config.pop("max_position_embeddings")).max_length, 256)

    def test_reads_the_older_names_of_the_rope_bases(self):
        def older(config):
            config.pop("rope_parameters")
            config.update(global_rope_theta=80000, local_rope_theta=160000.0)

        self.assertEqual(self.read(older).rope_bases, {"full_attention": 80000.0, "sliding_attention": 160000.0})
        bases = self.read(lambda config: config.pop("rope_parameters")).rope_bases
        self.assertEqual(bases, {"full_attention": 160000.0, "sliding_attention": 10000.0})

    def test_derives_layer_kinds_from_the_older_key(self):
        def older(config):
            config.pop("layer_types")
            config.update(num_hidden_layers=5, global_attn_every_n_layers=2)

        self.assertEqual([kind[0] for kind in self.read(older).layers], ["f", "s", "f", "s", "f"])
        self.assertEqual(self.read(lambda config: config.pop("layer_types")).layers, self.read().layers)

    def test_refuses_another_option_layout(self):
        # B23
        for layout in ("parallel", None, 1):
            self.refused(
                "UNSUPPORTED_OPTION_LAYOUT", agent=lambda config, layout=layout: config.update(option_layout=layout)
            )
        self.read(agent=lambda config: config.update(option_layout="sequential"))

    def test_refuses_any_temperature_but_three(self):
        # B23: the length is the layout; what each value means is for the runtime.
        for value in ([1.0, 1.0], [1.0] * 4, 1.0, "abc", None):
            self.refused("CONFIG_VALUE_INVALID", agent=lambda config, value=value: config.update(temperature=value))
        for value in ([0, -1, 1e9], ["abc", None, True]):
            self.read(agent=lambda config, value=value: config.update(temperature=value))
        self.read(agent=lambda config: config.pop("temperature"))

    def test_refuses_files_that_are_not_one_json_object(self):
        paths = make_checkpoint(self.folder / "checkpoint")
        for text in (b"", b"[]", b"{", b"\xff{}", b'{"a": 1, "a": 2}', b'{"a": NaN}', b'{"a": 1e999}', b"[" * 100_000):
            with open(paths["encoder_config"], "wb") as file:
                file.write(text)
            code = self.code_of(lambda: read_architecture(paths["encoder_config"], paths["agent_config"]))
            self.assertEqual(code, "CONFIG_UNREADABLE")
        missing = str(self.folder / "absent")
        self.assertEqual(self.code_of(read_architecture, missing, paths["agent_config"]), "CONFIG_UNREADABLE")
        self.assertEqual(self.code_of(read_architecture, str(self.folder), missing), "CONFIG_UNREADABLE")
