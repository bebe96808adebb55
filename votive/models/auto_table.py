"""The table of families: model_type, file, configuration, and the class for each use. Text and names only.

Files are imported when they are needed, by `auto` and by the package.
"""

from __future__ import annotations

import re

# model_type, file, configuration, and the class for each use; files are imported when they are needed.
# Of several classes for one use, a configuration's `architectures` chooses, by default the first.
_TABLE = """
albert albert AlbertConfig base=AlbertModel
    masked=AlbertForMaskedLM classify=AlbertForSequenceClassification tokens=AlbertForTokenClassification
    answer=AlbertForQuestionAnswering choice=AlbertForMultipleChoice pretrain=AlbertForPreTraining
apertus nemotron ApertusConfig base=ApertusModel causal=ApertusForCausalLM
arcee nemotron ArceeConfig base=ArceeModel causal=ArceeForCausalLM
bamba bamba BambaConfig base=BambaModel causal=BambaForCausalLM
bart bart BartConfig base=BartModel seq2seq=BartForConditionalGeneration causal=BartForCausalLM
    masked=BartForConditionalGeneration classify=BartForSequenceClassification answer=BartForQuestionAnswering
    pretrain=BartForConditionalGeneration
beit beit BeitConfig base=BeitModel image=BeitForImageClassification
bert bert BertConfig base=BertModel
    masked=BertForMaskedLM classify=BertForSequenceClassification tokens=BertForTokenClassification
    answer=BertForQuestionAnswering choice=BertForMultipleChoice pretrain=BertForPreTraining
    next_sentence=BertForNextSentencePrediction
bert-generation bert BertGenerationConfig base=BertGenerationEncoder
biogpt biogpt BioGptConfig base=BioGptModel causal=BioGptForCausalLM
blenderbot blenderbot BlenderbotConfig base=BlenderbotModel
    seq2seq=BlenderbotForConditionalGeneration causal=BlenderbotForCausalLM
blenderbot-small blenderbot BlenderbotSmallConfig base=BlenderbotSmallModel
    seq2seq=BlenderbotSmallForConditionalGeneration causal=BlenderbotSmallForCausalLM
blip blip BlipConfig
    image_text=BlipForConditionalGeneration vision2seq=BlipForConditionalGeneration
    visual_answer=BlipForQuestionAnswering
blip_vision_model blip BlipVisionConfig base=BlipVisionModel
bloom bloom BloomConfig base=BloomModel causal=BloomForCausalLM
camembert roberta CamembertConfig base=CamembertModel
    masked=CamembertForMaskedLM classify=CamembertForSequenceClassification tokens=CamembertForTokenClassification
    answer=CamembertForQuestionAnswering choice=CamembertForMultipleChoice pretrain=CamembertForMaskedLM
clip clip CLIPConfig base=CLIPModel image=CLIPForImageClassification zero_shot_image=CLIPModel
clip_text_model clip CLIPTextConfig base=CLIPTextModel
clip_vision_model clip CLIPVisionConfig base=CLIPVisionModel
codegen gptj CodeGenConfig base=CodeGenModel causal=CodeGenForCausalLM
cohere cohere CohereConfig base=CohereModel causal=CohereForCausalLM
cohere2 cohere Cohere2Config base=Cohere2Model causal=Cohere2ForCausalLM
convnext convnext ConvNextConfig base=ConvNextModel image=ConvNextForImageClassification backbone=ConvNextBackbone
convnextv2 convnext ConvNextV2Config base=ConvNextV2Model image=ConvNextV2ForImageClassification
    backbone=ConvNextV2Backbone
ctrl ctrl CTRLConfig base=CTRLModel causal=CTRLLMHeadModel
cwm llama_likes CwmConfig base=CwmModel causal=CwmForCausalLM
deberta deberta DebertaConfig base=DebertaModel
    masked=DebertaForMaskedLM classify=DebertaForSequenceClassification tokens=DebertaForTokenClassification
    answer=DebertaForQuestionAnswering pretrain=DebertaForMaskedLM
deberta-v2 deberta DebertaV2Config base=DebertaV2Model
    masked=DebertaV2ForMaskedLM classify=DebertaV2ForSequenceClassification tokens=DebertaV2ForTokenClassification
    answer=DebertaV2ForQuestionAnswering choice=DebertaV2ForMultipleChoice pretrain=DebertaV2ForMaskedLM
deepseek_v2 deepseek DeepseekV2Config base=DeepseekV2Model causal=DeepseekV2ForCausalLM
deepseek_v3 deepseek DeepseekV3Config base=DeepseekV3Model causal=DeepseekV3ForCausalLM
deit deit DeiTConfig base=DeiTModel image=DeiTForImageClassification|DeiTForImageClassificationWithTeacher
detr detr DetrConfig base=DetrModel detect=DetrForObjectDetection
dinov2 dinov2 Dinov2Config base=Dinov2Model image=Dinov2ForImageClassification backbone=Dinov2Backbone
dinov2_with_registers dinov2 Dinov2WithRegistersConfig base=Dinov2WithRegistersModel
    image=Dinov2WithRegistersForImageClassification backbone=Dinov2WithRegistersBackbone
distilbert distilbert DistilBertConfig base=DistilBertModel
    masked=DistilBertForMaskedLM classify=DistilBertForSequenceClassification
    tokens=DistilBertForTokenClassification answer=DistilBertForQuestionAnswering choice=DistilBertForMultipleChoice
    pretrain=DistilBertForMaskedLM
dots1 dots1 Dots1Config base=Dots1Model causal=Dots1ForCausalLM
electra electra ElectraConfig base=ElectraModel
    masked=ElectraForMaskedLM classify=ElectraForSequenceClassification tokens=ElectraForTokenClassification
    answer=ElectraForQuestionAnswering choice=ElectraForMultipleChoice pretrain=ElectraForPreTraining
ernie bert ErnieConfig base=ErnieModel
    masked=ErnieForMaskedLM classify=ErnieForSequenceClassification tokens=ErnieForTokenClassification
    answer=ErnieForQuestionAnswering choice=ErnieForMultipleChoice pretrain=ErnieForPreTraining
    next_sentence=ErnieForNextSentencePrediction
ernie4_5 ernie Ernie4_5Config base=Ernie4_5Model causal=Ernie4_5ForCausalLM
ernie4_5_moe ernie Ernie4_5_MoeConfig base=Ernie4_5_MoeModel causal=Ernie4_5_MoeForCausalLM
eurobert eurobert EuroBertConfig base=EuroBertModel
    masked=EuroBertForMaskedLM classify=EuroBertForSequenceClassification tokens=EuroBertForTokenClassification
    pretrain=EuroBertForMaskedLM
exaone4 exaone Exaone4Config base=Exaone4Model causal=Exaone4ForCausalLM
exaone_moe exaone ExaoneMoeConfig base=ExaoneMoeModel causal=ExaoneMoeForCausalLM
falcon falcon FalconConfig base=FalconModel causal=FalconForCausalLM
falcon_h1 falcon_h1 FalconH1Config base=FalconH1Model causal=FalconH1ForCausalLM
falcon_mamba mamba FalconMambaConfig base=FalconMambaModel causal=FalconMambaForCausalLM
flex_olmo olmo FlexOlmoConfig base=FlexOlmoModel causal=FlexOlmoForCausalLM
gemma gemma GemmaConfig base=GemmaModel causal=GemmaForCausalLM
gemma2 gemma Gemma2Config base=Gemma2Model causal=Gemma2ForCausalLM
gemma3 gemma3 Gemma3Config image_text=Gemma3ForConditionalGeneration
gemma3_text gemma Gemma3TextConfig base=Gemma3TextModel causal=Gemma3ForCausalLM
glm glm GlmConfig base=GlmModel causal=GlmForCausalLM
glm4 glm Glm4Config base=Glm4Model causal=Glm4ForCausalLM
glm4_moe glm Glm4MoeConfig base=Glm4MoeModel causal=Glm4MoeForCausalLM
gpt2 gpt2 GPT2Config base=GPT2Model causal=GPT2LMHeadModel
gpt_bigcode gpt_bigcode GPTBigCodeConfig base=GPTBigCodeModel causal=GPTBigCodeForCausalLM
gpt_neo gpt_neo GPTNeoConfig base=GPTNeoModel causal=GPTNeoForCausalLM
gpt_neox gpt_neox GPTNeoXConfig base=GPTNeoXModel causal=GPTNeoXForCausalLM
gpt_oss gpt_oss GptOssConfig base=GptOssModel causal=GptOssForCausalLM
gptj gptj GPTJConfig base=GPTJModel causal=GPTJForCausalLM
granite granite GraniteConfig base=GraniteModel causal=GraniteForCausalLM
granite_swa granite GraniteSWAConfig base=GraniteSWAModel causal=GraniteSWAForCausalLM
granitemoe granite GraniteMoeConfig base=GraniteMoeModel causal=GraniteMoeForCausalLM
granitemoe_swa granite GraniteMoeSWAConfig base=GraniteMoeSWAModel causal=GraniteMoeSWAForCausalLM
granitemoehybrid bamba GraniteMoeHybridConfig base=GraniteMoeHybridModel causal=GraniteMoeHybridForCausalLM
granitemoeshared granite GraniteMoeSharedConfig base=GraniteMoeSharedModel causal=GraniteMoeSharedForCausalLM
gte nomic_bert GteConfig base=GteModel
    masked=GteForMaskedLM classify=GteForSequenceClassification tokens=GteForTokenClassification
    pretrain=GteForMaskedLM
helium llama_likes HeliumConfig base=HeliumModel causal=HeliumForCausalLM
hubert hubert HubertConfig base=HubertModel ctc=HubertForCTC audio=HubertForSequenceClassification
hunyuan_v1_dense hunyuan HunYuanDenseV1Config base=HunYuanDenseV1Model causal=HunYuanDenseV1ForCausalLM
hunyuan_v1_moe hunyuan HunYuanMoEV1Config base=HunYuanMoEV1Model causal=HunYuanMoEV1ForCausalLM
hyperclovax granite HyperCLOVAXConfig base=HyperCLOVAXModel causal=HyperCLOVAXForCausalLM
internlm3 llama_likes InternLM3Config base=InternLM3Model causal=InternLM3ForCausalLM
iquestcoder llama_likes IQuestCoderConfig base=IQuestCoderModel causal=IQuestCoderForCausalLM
jais2 nemotron Jais2Config base=Jais2Model causal=Jais2ForCausalLM
jamba jamba JambaConfig base=JambaModel causal=JambaForCausalLM
jina_embeddings_v3 nomic_bert JinaEmbeddingsV3Config base=JinaEmbeddingsV3Model
    masked=JinaEmbeddingsV3ForMaskedLM classify=JinaEmbeddingsV3ForSequenceClassification
    tokens=JinaEmbeddingsV3ForTokenClassification answer=JinaEmbeddingsV3ForQuestionAnswering
    pretrain=JinaEmbeddingsV3ForMaskedLM
lfm2 lfm2 Lfm2Config base=Lfm2Model causal=Lfm2ForCausalLM
lfm2_moe lfm2 Lfm2MoeConfig base=Lfm2MoeModel causal=Lfm2MoeForCausalLM
llama llama LlamaConfig base=LlamaModel causal=LlamaForCausalLM
llama4_text llama4 Llama4TextConfig base=Llama4TextModel causal=Llama4ForCausalLM
llava llava LlavaConfig image_text=LlavaForConditionalGeneration
m2m_100 m2m_100 M2M100Config base=M2M100Model seq2seq=M2M100ForConditionalGeneration
mamba mamba MambaConfig base=MambaModel causal=MambaForCausalLM
mamba2 mamba Mamba2Config base=Mamba2Model causal=Mamba2ForCausalLM
marian marian MarianConfig base=MarianModel seq2seq=MarianMTModel causal=MarianForCausalLM
mbart mbart MBartConfig base=MBartModel seq2seq=MBartForConditionalGeneration causal=MBartForCausalLM
    masked=MBartForConditionalGeneration classify=MBartForSequenceClassification answer=MBartForQuestionAnswering
minicpm3 minicpm3 MiniCPM3Config base=MiniCPM3Model causal=MiniCPM3ForCausalLM
minimax minimax_text MiniMaxConfig base=MiniMaxModel causal=MiniMaxForCausalLM
minimax_m2 minimax MiniMaxM2Config base=MiniMaxM2Model causal=MiniMaxM2ForCausalLM
ministral llama_likes MinistralConfig base=MinistralModel causal=MinistralForCausalLM
ministral3 llama_likes Ministral3Config base=Ministral3Model causal=Ministral3ForCausalLM
mistral llama MistralConfig base=MistralModel causal=MistralForCausalLM
mixtral mixtral MixtralConfig base=MixtralModel causal=MixtralForCausalLM
modernbert modernbert ModernBertConfig base=ModernBertModel
    masked=ModernBertForMaskedLM classify=ModernBertForSequenceClassification
    tokens=ModernBertForTokenClassification answer=ModernBertForQuestionAnswering choice=ModernBertForMultipleChoice
    pretrain=ModernBertForMaskedLM
mpnet mpnet MPNetConfig base=MPNetModel
    masked=MPNetForMaskedLM classify=MPNetForSequenceClassification tokens=MPNetForTokenClassification
    answer=MPNetForQuestionAnswering choice=MPNetForMultipleChoice pretrain=MPNetForMaskedLM
mpt mpt MptConfig base=MptModel causal=MptForCausalLM
mt5 mt5 MT5Config base=MT5Model seq2seq=MT5ForConditionalGeneration encoder=MT5EncoderModel
    classify=MT5ForSequenceClassification tokens=MT5ForTokenClassification answer=MT5ForQuestionAnswering
mvp bart MvpConfig base=MvpModel seq2seq=MvpForConditionalGeneration causal=MvpForCausalLM
    masked=MvpForConditionalGeneration classify=MvpForSequenceClassification answer=MvpForQuestionAnswering
    pretrain=MvpForConditionalGeneration
nemotron nemotron NemotronConfig base=NemotronModel causal=NemotronForCausalLM
nemotron_h nemotron_h NemotronHConfig base=NemotronHModel causal=NemotronHForCausalLM
nomic_bert nomic_bert NomicBertConfig base=NomicBertModel
    masked=NomicBertForMaskedLM classify=NomicBertForSequenceClassification tokens=NomicBertForTokenClassification
    pretrain=NomicBertForMaskedLM
olmo olmo OlmoConfig base=OlmoModel causal=OlmoForCausalLM
olmo2 olmo Olmo2Config base=Olmo2Model causal=Olmo2ForCausalLM
olmo3 olmo Olmo3Config base=Olmo3Model causal=Olmo3ForCausalLM
olmoe olmo OlmoeConfig base=OlmoeModel causal=OlmoeForCausalLM
openai-gpt openai_gpt OpenAIGPTConfig base=OpenAIGPTModel causal=OpenAIGPTLMHeadModel
opt opt OPTConfig base=OPTModel causal=OPTForCausalLM
pegasus pegasus PegasusConfig base=PegasusModel seq2seq=PegasusForConditionalGeneration causal=PegasusForCausalLM
persimmon persimmon PersimmonConfig base=PersimmonModel causal=PersimmonForCausalLM
phi phi PhiConfig base=PhiModel causal=PhiForCausalLM
phi3 phi3 Phi3Config base=Phi3Model causal=Phi3ForCausalLM
phimoe phi PhimoeConfig base=PhimoeModel causal=PhimoeForCausalLM
plbart bart PLBartConfig base=PLBartModel seq2seq=PLBartForConditionalGeneration causal=PLBartForCausalLM
    classify=PLBartForSequenceClassification
qwen2 qwen Qwen2Config base=Qwen2Model causal=Qwen2ForCausalLM
qwen2_5_vl qwen2_vl Qwen2_5_VLConfig image_text=Qwen2_5_VLForConditionalGeneration
qwen2_5_vl_text qwen2_vl Qwen2_5_VLTextConfig base=Qwen2_5_VLTextModel
qwen2_moe qwen2_moe Qwen2MoeConfig base=Qwen2MoeModel causal=Qwen2MoeForCausalLM
qwen2_vl qwen2_vl Qwen2VLConfig image_text=Qwen2VLForConditionalGeneration
qwen2_vl_text qwen2_vl Qwen2VLTextConfig base=Qwen2VLTextModel
qwen3 qwen Qwen3Config base=Qwen3Model causal=Qwen3ForCausalLM
qwen3_moe mixtral Qwen3MoeConfig base=Qwen3MoeModel causal=Qwen3MoeForCausalLM
qwen3_next qwen3_next Qwen3NextConfig base=Qwen3NextModel causal=Qwen3NextForCausalLM
recurrent_gemma recurrent_gemma RecurrentGemmaConfig base=RecurrentGemmaModel causal=RecurrentGemmaForCausalLM
resnet resnet ResNetConfig base=ResNetModel image=ResNetForImageClassification backbone=ResNetBackbone
roberta roberta RobertaConfig base=RobertaModel
    masked=RobertaForMaskedLM classify=RobertaForSequenceClassification tokens=RobertaForTokenClassification
    answer=RobertaForQuestionAnswering choice=RobertaForMultipleChoice pretrain=RobertaForMaskedLM
roformer roformer RoFormerConfig base=RoFormerModel
    masked=RoFormerForMaskedLM classify=RoFormerForSequenceClassification tokens=RoFormerForTokenClassification
    answer=RoFormerForQuestionAnswering choice=RoFormerForMultipleChoice pretrain=RoFormerForMaskedLM
rwkv rwkv RwkvConfig base=RwkvModel causal=RwkvForCausalLM
sam sam SamConfig base=SamModel masks=SamModel
sam_vision_model sam_vision SamVisionConfig base=SamVisionModel
seed_oss llama_likes SeedOssConfig base=SeedOssModel causal=SeedOssForCausalLM
segformer segformer SegformerConfig base=SegformerModel image=SegformerForImageClassification
    segment=SegformerForSemanticSegmentation
siglip siglip SiglipConfig base=SiglipModel image=SiglipForImageClassification zero_shot_image=SiglipModel
siglip2 siglip2 Siglip2Config base=Siglip2Model image=Siglip2ForImageClassification zero_shot_image=Siglip2Model
siglip2_text_model siglip2 Siglip2TextConfig base=Siglip2TextModel
siglip2_vision_model siglip2 Siglip2VisionConfig base=Siglip2VisionModel
siglip_text_model siglip SiglipTextConfig base=SiglipTextModel
siglip_vision_model siglip SiglipVisionConfig base=SiglipVisionModel
smollm3 smollm3 SmolLM3Config base=SmolLM3Model causal=SmolLM3ForCausalLM
solar_open glm SolarOpenConfig base=SolarOpenModel causal=SolarOpenForCausalLM
stablelm stablelm StableLmConfig base=StableLmModel causal=StableLmForCausalLM
starcoder2 starcoder Starcoder2Config base=Starcoder2Model causal=Starcoder2ForCausalLM
swin swin SwinConfig base=SwinModel image=SwinForImageClassification
    masked_image=SwinForMaskedImageModeling backbone=SwinBackbone
t5 t5_heads T5Config base=T5Model seq2seq=T5ForConditionalGeneration encoder=T5EncoderModel
    classify=T5ForSequenceClassification tokens=T5ForTokenClassification answer=T5ForQuestionAnswering
trocr trocr TrOCRConfig causal=TrOCRForCausalLM
umt5 mt5 UMT5Config base=UMT5Model seq2seq=UMT5ForConditionalGeneration encoder=UMT5EncoderModel
    classify=UMT5ForSequenceClassification tokens=UMT5ForTokenClassification answer=UMT5ForQuestionAnswering
vaultgemma gemma VaultGemmaConfig base=VaultGemmaModel causal=VaultGemmaForCausalLM
vision-encoder-decoder vision_encoder_decoder VisionEncoderDecoderConfig
    base=VisionEncoderDecoderModel vision2seq=VisionEncoderDecoderModel
vit vit ViTConfig base=ViTModel image=ViTForImageClassification
wav2vec2 wav2vec2 Wav2Vec2Config base=Wav2Vec2Model ctc=Wav2Vec2ForCTC
    audio=Wav2Vec2ForSequenceClassification audio_frames=Wav2Vec2ForAudioFrameClassification
whisper whisper WhisperConfig base=WhisperModel speech=WhisperForConditionalGeneration
xglm xglm XGLMConfig base=XGLMModel causal=XGLMForCausalLM
xlm-roberta roberta XLMRobertaConfig base=XLMRobertaModel
    masked=XLMRobertaForMaskedLM classify=XLMRobertaForSequenceClassification
    tokens=XLMRobertaForTokenClassification answer=XLMRobertaForQuestionAnswering choice=XLMRobertaForMultipleChoice
    pretrain=XLMRobertaForMaskedLM
xlm-roberta-xl roberta XLMRobertaXLConfig base=XLMRobertaXLModel
    masked=XLMRobertaXLForMaskedLM classify=XLMRobertaXLForSequenceClassification
    tokens=XLMRobertaXLForTokenClassification answer=XLMRobertaXLForQuestionAnswering
    choice=XLMRobertaXLForMultipleChoice pretrain=XLMRobertaXLForMaskedLM
"""
FAMILIES = {model_type: rest for model_type, *rest in map(str.split, re.split(r"\n(?=\S)", _TABLE.strip()))}
# Decoders that give texts classes, too.
_CLASSIFIERS = """
apertus arcee bamba biogpt bloom codegen cohere cohere2 ctrl cwm deepseek_v2 deepseek_v3 dots1 ernie4_5 ernie4_5_moe
exaone4 exaone_moe falcon falcon_h1 falcon_mamba flex_olmo gemma gemma2 gemma3_text glm glm4 glm4_moe gpt2 gpt_bigcode
gpt_neo gpt_neox gpt_oss gptj granite granite_swa granitemoe granitemoe_swa granitemoehybrid granitemoeshared helium
hunyuan_v1_dense hunyuan_v1_moe hyperclovax internlm3 iquestcoder jais2 jamba lfm2 lfm2_moe llama llama4_text mamba
mamba2 minicpm3 minimax minimax_m2 ministral ministral3 mistral mixtral mpt nemotron nemotron_h olmo olmo2 olmo3 olmoe
openai-gpt opt persimmon phi phi3 phimoe qwen2 qwen2_moe qwen3 qwen3_moe qwen3_next recurrent_gemma rwkv seed_oss
smollm3 solar_open stablelm starcoder2 vaultgemma xglm
"""
for _uses in map(FAMILIES.__getitem__, _CLASSIFIERS.split()):
    _base = next(use for use in _uses if use.startswith("base=")).removeprefix("base=").removesuffix("Model")
    _uses.append(f"classify={_base}ForSequenceClassification")
# Files that say another name, and mean the same by every key.
SAME = {"gpt-sw3": "gpt2", "kimi_k2": "deepseek_v3"}
USES = {
    "base": "AutoModel",
    "causal": "AutoModelForCausalLM",
    "seq2seq": "AutoModelForSeq2SeqLM",
    "masked": "AutoModelForMaskedLM",
    "classify": "AutoModelForSequenceClassification",
    "tokens": "AutoModelForTokenClassification",
    "answer": "AutoModelForQuestionAnswering",
    "choice": "AutoModelForMultipleChoice",
    "pretrain": "AutoModelForPreTraining",
    "next_sentence": "AutoModelForNextSentencePrediction",
    "encoder": "AutoModelForTextEncoding",
    "image": "AutoModelForImageClassification",
    "zero_shot_image": "AutoModelForZeroShotImageClassification",
    "vision2seq": "AutoModelForVision2Seq",
    "speech": "AutoModelForSpeechSeq2Seq",
    "image_text": "AutoModelForImageTextToText",
    "detect": "AutoModelForObjectDetection",
    "segment": "AutoModelForSemanticSegmentation",
    "cut_out": "AutoModelForImageSegmentation",
    "masked_image": "AutoModelForMaskedImageModeling",
    "visual_answer": "AutoModelForVisualQuestionAnswering",
    "masks": "AutoModelForMaskGeneration",
    "depth": "AutoModelForDepthEstimation",
    "ctc": "AutoModelForCTC",
    "audio": "AutoModelForAudioClassification",
    "audio_frames": "AutoModelForAudioFrameClassification",
    "backbone": "AutoBackbone",
}


def class_files() -> dict[str, str]:
    """The file of each class that the table names.

    >>> votive.models.auto_table.class_files()["Qwen3Config"]
    'qwen'
    """
    return {
        name: file
        for file, config, *uses in FAMILIES.values()
        for name in [config, *(name for use in uses for name in use.partition("=")[2].split("|"))]
    }
