"""What the packages call a language, and its shortest ISO 639 code."""

LINGUA = dict(
    pair.split("=")
    for pair in """
    afrikaans=af albanian=sq arabic=ar armenian=hy azerbaijani=az basque=eu belarusian=be bengali=bn bokmal=nb
    bosnian=bs bulgarian=bg catalan=ca chinese=zh croatian=hr czech=cs danish=da dutch=nl english=en esperanto=eo
    estonian=et finnish=fi french=fr ganda=lg georgian=ka german=de greek=el gujarati=gu hebrew=he hindi=hi
    hungarian=hu icelandic=is indonesian=id irish=ga italian=it japanese=ja kazakh=kk korean=ko latin=la latvian=lv
    lithuanian=lt macedonian=mk malay=ms maori=mi marathi=mr mongolian=mn nynorsk=nn persian=fa polish=pl
    portuguese=pt punjabi=pa romanian=ro russian=ru serbian=sr shona=sn slovak=sk slovene=sl somali=so sotho=st
    spanish=es swahili=sw swedish=sv tagalog=tl tamil=ta telugu=te thai=th tsonga=ts tswana=tn turkish=tr ukrainian=uk
    urdu=ur vietnamese=vi welsh=cy xhosa=xh yoruba=yo zulu=zu
    """.split()
)

CHATTERBOT = dict(
    pair.split("=")
    for pair in """
    bengali=bn chinese=zh dutch=nl english=en french=fr german=de hebrew=he hindi=hi indonesian=id italian=it
    japanese=ja korean=ko marathi=mr oriya=or persian=fa portuguese=pt russian=ru spanish=es swedish=sv tamil=ta
    telugu=te thai=th traditionalchinese=zh turkish=tr ukrainian=uk urdu=ur yoruba=yo
    """.split()
)

# Translations of the declaration, by the name of their file; creoles of English are left out.
UDHR = dict(
    pair.split("=")
    for pair in """
    afr=af als=sq amh=am arb=ar ast=ast azj_latn=az bam=bm bel=be ben=bn bod=bo bos_latn=bs bre=br bul=bg cat=ca ceb=ceb
    ces=cs chr_cased=chr ckb=ku cmn_hans=zh cmn_hant=zh cos=co cym=cy dan=da deu_1996=de div=dv dzo=dz ell_monotonic=el
    eng=en epo=eo est=et eus=eu ewe=ee fao=fo fij=fj fin=fi fra=fr fri=fy fur=fur gla=gd gle=ga glg=gl glv=gv gug=gn
    guj=gu hat_popular=ht hau_NG=ha haw=haw heb=he hil=hil hin=hi hrv=hr hsb=hsb hun=hu hye=hy ibo=ig ido=io ike=iu
    ilo=ilo ind=id isl=is ita=it jav=jv jpn=ja kal=kl kan=kn kat=ka kaz=kk khk=mn khm=km kin=rw kir=ky kmr=ku kor=ko
    lao=lo lat=la lav=lv lin=ln lit=lt ltz=lb lug=lg mal=ml mar=mr mkd=mk mlt=mt mri=mi mya=my nav=nv nbl=nr nds=nds
    nep=ne nld=nl nno=nn nob=nb nso=nso nya_chinyanja=ny oci_1=oc oss=os pan=pa pap=pap pes_1=fa plt=mg pol=pl
    por_BR=pt por_PT=pt quz=qu roh=rm ron_2006=ro run=rn rus=ru sag=sg sah=sah san=sa sin=si slk=sk slv=sl sme=se
    smo=sm sna=sn som=so sot=st spa=es src=sc srp_cyrl=sr srp_latn=sr ssw=ss sun=su swe=sv swh=sw tah=ty tam=ta tat=tt
    tel=te tet=tet tgk=tg tgl=tl tha=th tir=ti ton=to tsn=tn tso_ZW=ts tuk_latn=tk tur=tr tzm_tfng=zgh uig_arab=ug ukr=uk
    urd=ur uzn_latn=uz vai=vai vec=vec ven=ve vie=vi war=war wln=wa wol=wo xho=xh ydd=yi yor=yo yua=yua zul=zu
    """.split()
)
