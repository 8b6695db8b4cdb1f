// The search of the site: it runs in the browser in the place of the theme's own worker, with the
// theme's index and messages. docs/hooks.py puts docs/questions.txt before it, as QUESTIONS. A search
// finds pages, and the sections of a page that fit best. Words are compared by their stem, and words
// of one meaning find each other.

// Messages of the theme. What is sent and received has one of these types.
const SETUP = 0, READY = 1, QUERY = 2, RESULT = 3;

// Words of one meaning, a group on each line: those of users, and those of the pages. A word may be
// in several groups. Words that are joined by `_` stand for a sequence, which only a question has.
const SYNONYMS = `
again twice double duplicate duplication repeat dedup deduplicate rerun idempotent re_run more_than_once two_times second_time copies_of
right permission privilege grant policy access action allow iam role authorize entitle acl scope
denied deny forbidden unauthorized 401 403 refuse refused accessdenied permission not_allowed
password passphrase passwd secret credential login token authenticate key confidential
load import ingest copy sync transfer pull extract replicate mirror upload etl write fetch bring ship push insert feed reach elt offload
delete remove drop erase purge truncate gone vanish disappear discard retract obsolete clear get_rid rid throw_away take_out wipe
hide exclude redact mask sensitive private leave_out leave_away omit ignore skip_column drop_column
resume crash restart die dead death node guarantee loss lose lost kill kill abort recover interrupt continue die died halfway half_way power_cut power_loss power_failure reboot middle signal sigterm sigkill ctrl preempt evicted
fail failure error break broken problem exception failure issue trouble wrong
slow fast speed performance quick duration long takes_long throughput tune quicker faster hours takes_forever takes_ages bottleneck rapid latency cpu optimize how_long
memory ram heap oom out_of_memory gigabytes 137 footprint
disk space storage full enospc no_space temp temporary spill
undo revert rollback roll_back restore back_out mistake accident accidentally wrongly
schedule cron periodic nightly hourly daily every_night every_hour every_day every_morning timer automatically automatic unattended
continuous interval realtime streaming stream real_time near_real_time daemon loop round second minute tail poll watch constantly permanently every_minute every_few_minutes every_few_seconds every_second
incremental delta new changed cursor watermark newest latest bookmark
upsert merge update change modify overwrite combine correct correction
alert notify notification notice know_when tell_me wake page_me call_me monitor metric observability email mail slack alarm pager pagerduty on_call oncall health watch
skip reject quarantine bad_rows bad_records malformed corrupt broken_lines dirty invalid bad tolerate unparsable garbage
column field attribute property header
row record line entry tuple
source origin upstream input producer supplier vendor
target destination lake sink downstream output
schema_evolution add_column added_column new_column new_field extra_column schema_drift schema_change schema_changes column_was_added
reset start_over scratch from_zero from_scratch start_fresh wipe clean_slate
backfill full_refresh reload historic history past load_everything months weeks years last_year reprocess rebuild redo anew
install setup set_up pip get_started begin quickstart first
firewall proxy whitelist allowlist egress domain bastion tunnel ssh corporate vpc subnet endpoint private host port security_group open_ports offline network airgapped air_gapped intranet internet
certificate tls ssl encrypted
compare versus vs alternative difference better instead competitor
migrate switch move_from coming_from replace cutover
concurrent parallel simultaneous concurrency at_the_same_time at_once same_time two_processes race simultaneously overlap conflict
compaction compact maintain grow pile storage vacuum optimize small_files too_many_files many_files cleanup expire housekeeping
query select read pandas duckdb trino athena spark_sql analyze analyst scan consume consumer reader tableau dashboard notebook jupyter superset powerbi power_bi looker bi report reporting
notebook jupyter laptop computer machine local
laptop computer machine pc desktop workstation host
number numeric integer decimal float double digit figure amount money currency euro dollar cent price round rounding precision scale
text string varchar
date timestamp datetime timezone time_zone clock calendar
day yesterday today daily overnight night monday tuesday wednesday thursday friday saturday sunday weekend
timezone time_zone utc zone summer daylight offset off_by
table dataset relation
file object delivery
folder directory path prefix subfolder location
separator delimiter delimited semicolon tab pipe comma tsv
csv excel spreadsheet xlsx
encoding charset utf latin1 umlaut character accent letter sign garbled mojibake
weird strange odd funny garbled
null empty missing blank none zero nothing
nested struct json array list envelope wrap inside
large big huge giant blob enormous gigantic massive billion terabyte
small tiny little minimal
compressed gzip zip unzip unpack decompress
database db postgres postgresql mysql mariadb rdbms
environment dev staging production prod test stage
deploy container docker kubernetes k8s pod helm cluster manifest
ci pipeline_check github pull_request
orchestrator airflow dagster prefect
late delay lag stale fresh behind old outdated freshness current
check validate verify test try
preview dry_run plan see_what without_writing simulate
rename move relocate
collide collision collapse clash rename
cost price cheap expensive bill requests money
gdpr privacy personal pii
partition partitioned partitioning
primary_key primarykey pk unique key identify identity id
snapshot consistent
travel snapshot yesterday time_travel as_of old_version earlier_version previous_version last_week last_month
license licence open_source
version upgrade update
wildcard glob pattern many_files several_files all_files
environment_variable variable env
log debug verbose
exit code status return errorlevel
telemetry phone_home tracking_data leaves request
security vulnerability vulnerable cve advisory scanner trivy snyk grype threat exploit
jar library driver dependency package
engineer dba administrator admin operator
lineage audit auditor provenance tracking trace origin originate where_from came_from come_from when_loaded who_loaded
hang stuck freeze frozen stall blocked waiting wait lock timeout silent unresponsive no_progress not_moving nothing_moves never_finishes never_ends never_returns
lock hold held locked concurrent conflict occupied
alive running progress heartbeat health unfinished
limit sample few_rows subset only_some
config configuration settings yaml option
example sample template
command cli flag terminal
explain meaning mean
type cast convert conversion coerce interpret
sample trial evaluate free try tryout play playground
replica standby secondary primary production server
soft flag marker deleted
subfolder subdirectory folder directory recursive
wait timeout patience
stable deterministic reproducible
boss manager management convince reason decide
incomplete partial half unfinished some_tables
safe secure encrypt protect
manual hand repair
instance vm machine server
count number_of mismatch compare_rows differ total sum reconcile
stop end shutdown cancel terminate
user account person
view materialized
boss chief cfo cto ceo director executive leadership stakeholder slide presentation business case
finance accounting accountant controller ledger bookkeeping cent penny pence sum amount
auditor regulator inspector examiner evidence proof prove attest completeness
developer programmer coder engineer
analyst scientist marketing sales department colleague team people
oncall sre responder incident outage postmortem
tyre tire kick sandbox playground experiment toy dabble rehearse rehearsal
begin start onboard newcomer newbie novice beginner intro introduction tutorial walkthrough guide walk_me_through
stale outdated old behind late lagging delayed overdue
blow explode burst crash fail die fall_over blow_up
choke choking swamped overwhelm overload slow memory
hog hungry greedy eat gobble consume memory
bill invoice charge fee spend expense budget cost
cheap frugal economical save saving reduce cost
wipe scrub nuke trash bin scrap purge erase delete
vanish evaporate disappear missing lost gone
lie rest stored kept location where_does where_do where_is
put place store keep
spread flatten explode unnest expand
squash collapse combine merge concatenate
glue stitch join combine
shrink compact reduce smaller
swell bloat balloon grow growing
freeze pin lock strict
babysit supervise oversee watch monitor
ping alert notify message ring buzz beep
hook webhook callback
robot bot automation ci lint
fingerprint hash checksum digest
nickname alias name rename
century millennium year date
dawn noon midnight morning daily schedule
weekend weekly month monthly calendar schedule
clash collide conflict contend race
queue wait lock concurrent
spy eavesdrop sniff intercept leak expose confidential security
hacker attacker malicious threat adversary intruder
compliance soc2 iso hipaa pci certification security
law legal lawyer regulation gdpr
forget oblivion erase gdpr
yesterday previous earlier before past history
box blade vm ec2 host machine
desktop notebook macbook thinkpad laptop
repo repository git version_control
secretless keyless passwordless oidc role
bucket container store storage
cluster farm fleet nodes
gist essence overview summary
handbook manual reference documentation
picky strict validate
fussy tolerant lenient permissive tolerate
grid sheet workbook spreadsheet excel
postal zipcode zip leading zero
umlaut diacritic special_characters accent encoding
decimal fraction digit cent precision
clock watch time skew
zombie orphan leftover abandoned stale
leftover residue debris remains garbage cleanup
resurrect restore recover undelete
rewind replay backfill again
gap hole missing backfill
catch_up backlog backfill lag
dozen hundred thousand many
trickle dribble small continuous
firehose flood torrent streaming large
funnel channel route load
fork branch copy clone
twin clone copy duplicate
divorce leave switch migrate replace
incumbent legacy old previous vendor
handover cutover migrate switch
sane sensible reasonable default
knob switch toggle setting option flag
tweak tune adjust performance configure
guess infer detect sniff assume
peek glance preview inspect
dissect analyse examine inspect
wizard assistant generator scaffold init
stencil boilerplate template sample example
cookbook recipe example howto
verdict outcome result status exit
signal sigterm sigint sigkill stop interrupt
bounce restart reboot
brownout blackout outage power_cut
plane train tunnel offline network
mainframe as400 db2
warehouse snowflake redshift bigquery synapse
lakehouse lake iceberg
ledger log journal
toolchain prerequisite requirement
sdk api programmatic python
curl http rest url
ftp sftp scp
tarball tar archive zip
thread worker executor task parallel
pager escalation alert
traffic bandwidth network throughput
`;

const STOP_WORDS = new Set(`
a about after also although always am an and any anybody anyone anything are as at be because
become becomes been before being but by came can cannot come comes could did do does doesn doing
don during each ever every everybody everything fall falls fine for from get gets getting give
given go goes going got had happen happened happens has have having here how however i if im in
into is isn it its just keep keeps know lakeload leave let like little look lot made make many may
maybe me mean means might most much must my need needs never nobody nothing now of off often ok
okay on once one onto or others our out over own please possible properly put really s same say
says see seem seems shall should show shows sit sits so some somebody someone something sometimes
sort still stuff such sure t take takes tell than that the their them then there these they thing
things think this those to too tried until up us use used using want wanting wants was way we well
went were what when where which while who whole why will with without won work working works would
wrote yet you your
`.trim().split(/\s+/));

// Weights of the ranking. Those of the first line are the coefficients of a softmax regression over
// all questions of docs/questions.txt, each asked for its page with itself left out.
const RANK = {
  // The text of the page, its best section, and its questions: all of them, each word, the nearest.
  page: 0.22, section: 0.13, asked: 0.5, words: 0.12, nearest: 1.5, boost: 0.7,
  // How much a title counts beside the text of its section, and having all of its words.
  heading: 1.8, whole: 2,
  // How much a match of another word counts.
  synonym: 0.45, prefix: 0.4, partOfSequence: 0.9,
  // How much rare words count.
  rare: 0.5,
  // BM25: saturation, of text and of questions, and the influence of lengths.
  k: 3.5, askedK: 1.2, pageLength: 0.75, sectionLength: 0.35,
  // How many words of questions in general are added to those of a page (Dirichlet smoothing).
  smoothing: 60,
};
const SECTIONS_OF_A_PAGE = 5, PAGES = 20;

// What an apostrophe separates from a word: `isn't`, `table's`.
const ELISION = /['’](s|t|re|ve|ll|d|m)\b/g;

const stems = new Map();

/** Return what the forms of a word have in common: `load` of `loads`, `loaded` and `loading`. */
function stem(word) {
  if (!stems.has(word)) stems.set(word, stemOf(word));
  return stems.get(word);
}

function stemOf(word) {
  if (word.length < 4 || /[^a-z]/.test(word)) return word;
  let found = BRITISH.reduce((one, [ending, other]) => one.replace(ending, other), word);
  if (/ie[sd]$/.test(found) && found.length > 4) found = found.slice(0, -3) + "y";
  else if (/(ss|x|sh|ch|z)es$/.test(found)) found = found.slice(0, -2);
  else if (/[^sui]s$/.test(found)) found = found.slice(0, -1);
  for (const [ending, least] of ENDINGS) {
    const rest = found.slice(0, -ending.length);
    if (!found.endsWith(ending) || rest.length < least || !/[aeiouy]/.test(rest)) continue;
    found = rest.length > 3 ? rest.replace(/([bdgmnprt])\1$/, "$1") : rest;
    break;
  }
  return found.length > 3 && found.endsWith("e") ? found.slice(0, -1) : found;
}

// Endings that forms of a word differ by, each with the least that remains of the word.
const ENDINGS = Object.entries({ating: 4, ation: 4, ated: 4, ator: 4, ate: 4, ment: 6, ness: 4,
  ity: 4, ing: 3, ed: 3, ion: 4, ly: 3, able: 4, er: 3, or: 3});
const BRITISH = [[/is(e[ds]?|ing|ation|er)$/, "iz$1"], [/([a-z]{3})our(s|ed|ing)?$/, "$1or$2"],
  [/ogue(s?)$/, "og$1"], [/cence(s?)$/, "cense$1"]];

/** Return words, and what two of them say together: `start over` is neither `start` nor `over`. */
const withPairs = words => [...words, ...words.slice(1).map((word, i) => `${words[i]} ${word}`)];

/** Return the parts of a name such as `OOMKilled`. */
const parts = name => name.split(/(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/);

const plain = html => html.replace(/<[^>]*>/g, " ").replace(/&(amp|lt|gt|quot|#39);/g, " ");

class Search {
  constructor({config, docs}) {
    this.separator = new RegExp(config.separator.replace(/\]\+$/, "?!;&|%<>*+]+"), "g");
    this.pages = [];
    this.blocks = new Map();
    const byLocation = new Map();
    for (const doc of docs) {
      const [location, anchor] = doc.location.split("#");
      if (!byLocation.has(location)) {
        const page = {doc, index: this.pages.length, sections: [], terms: new Map(), length: 0,
          asked: new Map(), askedLength: 0};
        byLocation.set(location, page);
        this.pages.push(page);
      }
      const page = byLocation.get(location);
      const section = {doc, terms: new Map(), length: 0};
      page.sections.push(section);
      section.title = new Set(this.words(doc.title).map(stem));
      const words = this.words(doc.text);
      for (const term of [...words.map(stem), ...section.title])
        for (const item of [page, section]) item.terms.set(term, (item.terms.get(term) || 0) + 1);
      section.length = words.length + 5;
      page.length += section.length;
    }
    this.readQuestions(byLocation);
    this.rarities = rarities(this.pages, page => [...page.terms.keys(), ...page.asked.keys()], RANK.rare);
    this.askedRarities = rarities(this.pages, page => page.asked.keys(), 1);
    const sections = this.pages.flatMap(page => page.sections);
    const mean = items => items.reduce((sum, item) => sum + item.length, 0) / items.length;
    this.meanPage = mean(this.pages);
    this.meanSection = mean(sections);
    this.vocabulary = [...this.rarities.keys()].filter(term => !term.includes(" ")).sort();
    this.groups = new Map();
    this.sequences = new Map();
    for (const line of SYNONYMS.trim().split("\n")) {
      const group = line.split(" ");
      const terms = group.filter(word => !word.includes("_")).map(stem);
      for (const word of group) {
        const into = word.includes("_") ? this.sequences : this.groups;
        const key = word.split("_").map(stem).join(" ");
        into.set(key, [...(into.get(key) || []), ...terms]);
      }
    }
  }

  /** Read the questions: of each page how many have a term, and of a term all that have it. */
  readQuestions(byLocation) {
    this.questions = new Map();
    const questions = [];
    let page;
    for (const line of QUESTIONS.split("\n").filter(line => line && !line.startsWith("#"))) {
      if (line.endsWith("/")) page = byLocation.get(line === "./" ? "" : line);
      else {
        const words = this.words(line.replace(ELISION, "")).map(stem);
        const question = {page, terms: new Set(withPairs(words))};
        questions.push(question);
        page.askedLength += question.terms.size;
        for (const term of question.terms) {
          page.asked.set(term, (page.asked.get(term) || 0) + 1);
          if (!this.questions.has(term)) this.questions.set(term, []);
          this.questions.get(term).push(question);
        }
      }
    }
    this.askedLength = this.pages.reduce((sum, page) => sum + page.askedLength, 0);
    this.questionCount = questions.length;
    for (const question of questions) question.length = this.lengthOf(question.terms);
  }

  /** Return what a term tells of a question: little if many have it. */
  weightOf(term) {
    return Math.log(1 + this.questionCount / ((this.questions.get(term) || []).length + 0.5));
  }

  /** Return the length of a vector of terms, each with its weight. */
  lengthOf(terms) {
    return Math.hypot(...[...terms].map(term => this.weightOf(term))) || 1;
  }

  words(html) {
    return plain(html).toLowerCase().split(this.separator).filter(word => word);
  }

  /** Return the ideas of a question: each is a map of terms with the weight of their match. With
   * them, as `words`, the stems of all its words without slips. */
  ideas(question) {
    const words = question.replace(ELISION, "").split(this.separator).filter(word => word)
      .flatMap(word => this.rarities.has(stem(word.toLowerCase())) ? word : parts(word))
      .map(word => word.toLowerCase());
    const stems = words.map(stem);
    const ideas = [];
    ideas.words = [...stems];
    const inSequence = new Set();
    for (let first = 0; first < stems.length; first++) for (const size of [4, 3, 2]) {
      const key = stems.slice(first, first + size).join(" ");
      if (first + size > stems.length || !this.sequences.has(key)) continue;
      ideas.push(new Map(this.sequences.get(key).map(term => [term, RANK.synonym])));
      for (let i = first; i < first + size; i++) inSequence.add(i);
      break;
    }
    const meant = words.map((word, i) => i).filter(i => !STOP_WORDS.has(words[i]));
    const typed = /\S$/.test(question) ? words.length - 1 : -1;
    for (const i of meant.length || ideas.length ? meant : words.keys()) {
      const idea = new Map();
      const add = (term, weight) => idea.set(term, Math.max(weight, idea.get(term) || 0));
      const known = this.rarities.has(stems[i]);
      const typos = known || this.groups.has(stems[i]) ? []
        : this.vocabulary.filter(term => isTypo(stems[i], term));
      const begun = i === typed || !known ? this.begins(stems[i]) : [];
      for (const term of begun) add(term, RANK.prefix);
      if (!known) ideas.words[i] = typos[0] || begun[0] || stems[i];
      for (const word of typos.length ? typos : [stems[i]]) {
        for (const term of this.groups.get(word) || []) add(term, RANK.synonym);
        add(word, 1);
      }
      if (inSequence.has(i)) for (const [term, weight] of idea) idea.set(term, weight * RANK.partOfSequence);
      ideas.push(idea);
    }
    return ideas;
  }

  begins(prefix) {
    if (prefix.length < 3) return [];
    return this.vocabulary.filter(term => term.startsWith(prefix)).slice(0, 40);
  }

  /** Return what a term tells of a page: little if many have it. */
  rarity(term) {
    return this.rarities.get(term) || 0;
  }

  /** Return how well a page or a section fits (BM25). */
  score(item, ideas, mean, b) {
    const norm = RANK.k * (1 - b + b * item.length / mean);
    return best(ideas, term => {
      const count = item.terms.get(term);
      return count ? this.rarity(term) * count * (RANK.k + 1) / (count + norm) : 0;
    });
  }

  /** Return how well the questions of a page fit, all of them as one text (BM25). */
  ofQuestions(page, ideas) {
    return best(ideas, term => {
      const count = page.asked.get(term);
      return count
        ? this.askedRarities.get(term) * count * (RANK.askedK + 1) / (count + RANK.askedK) : 0;
    });
  }

  /** Return how much more often each word is in questions of this page than in others (naive Bayes). */
  ofWords(page, terms) {
    let sum = 0;
    for (const term of terms) {
      const everywhere = (this.questions.get(term) || []).length / this.askedLength;
      if (everywhere) sum += Math.log(((page.asked.get(term) || 0) / everywhere + RANK.smoothing)
        / (page.askedLength + RANK.smoothing));
    }
    return sum;
  }

  /** Return of each page how near its three nearest questions are: the cosines of the words. */
  nearest(terms) {
    const shared = new Map();
    for (const term of terms) for (const question of this.questions.get(term) || [])
      shared.set(question, (shared.get(question) || 0) + this.weightOf(term) ** 2);
    const near = this.pages.map(() => []);
    const length = this.lengthOf(terms);
    for (const [question, sum] of shared)
      near[question.page.index].push(sum / (length * question.length));
    return near.map(all => all.sort((one, other) => other - one).slice(0, 3)
      .reduce((sum, cosine) => sum + cosine, 0));
  }

  /** Return how well a title fits: what it has of the question, and the question of it. */
  ofTitle(title, ideas) {
    const found = best(ideas, term => title.has(term) ? this.rarity(term) : 0);
    if (!found) return 0;
    const all = [...title].reduce((sum, term) => sum + this.rarity(term), 0);
    return found + RANK.whole * found * Math.min(1, found / all);
  }

  ofSection(section, ideas) {
    return this.score(section, ideas, this.meanSection, RANK.sectionLength)
      + RANK.heading * this.ofTitle(section.title, ideas);
  }

  /** Return the pages that fit, the best first, each with its sections that fit. */
  ranking(ideas) {
    const terms = new Set(withPairs(ideas.words));
    // Words that no question has stand for those of one meaning.
    for (const word of ideas.words) if (!this.questions.has(word))
      for (const term of this.groups.get(word) || []) terms.add(term);
    const nearest = this.nearest(terms);
    const found = [];
    for (const page of this.pages) {
      const ofPage = this.score(page, ideas, this.meanPage, RANK.pageLength);
      const asked = this.ofQuestions(page, ideas);
      if (!ofPage && !asked) continue;
      const sections = page.sections
        .map(section => ({section, score: this.ofSection(section, ideas)}))
        .filter(({score}) => score > 0)
        .sort((one, other) => other.score - one.score);
      const score = RANK.page * ofPage + RANK.section * (sections.length ? sections[0].score : 0)
        + RANK.asked * asked + RANK.words * this.ofWords(page, terms)
        + RANK.nearest * nearest[page.index] + RANK.boost * Math.log(page.doc.boost || 1);
      found.push({page, sections, score});
    }
    return found.sort((one, other) => other.score - one.score).slice(0, PAGES);
  }

  search(question) {
    const ideas = this.ideas(question);
    const terms = new Set(ideas.flatMap(idea => [...idea.keys()]));
    return {items: this.ranking(ideas).map(({page, sections}) => {
      const shown = sections.slice(0, SECTIONS_OF_A_PAGE).map(({section, score}) =>
        this.result(section.doc, score, terms));
      if (!shown.some(item => item.location === page.doc.location))
        shown.push(this.result(page.doc, 0, terms));
      return shown;
    })};
  }

  /** Return what the theme shows of a section: its title, and its part that has most of the words. */
  result(doc, score, terms) {
    const matched = {};
    const mark = text => text.replace(/[^\s<>&;]+/g, word => {
      const parts = this.words(word).map(part => [part, terms.has(stem(part))]);
      for (const [part, isMatch] of parts) if (isMatch) matched[part] = true;
      return parts.some(([, isMatch]) => isMatch) ? `<mark>${word}</mark>` : word;
    });
    let text = "", most = -1;
    for (const block of this.blocksOf(doc)) {
      let count = 0;
      for (const term of block.terms) if (terms.has(term)) count++;
      if (count > most) [text, most] = [block.text, count];
    }
    const end = text.length > 320 ? text.lastIndexOf(" ", 320) : text.length;
    const shown = text.slice(0, end) + (end < text.length ? " …" : "");
    return {...doc, title: mark(doc.title), text: shown && `<p>${mark(shown)}</p>`, score,
      terms: matched};
  }

  /** Return the paragraphs, rows and items of a section, each with its terms. */
  blocksOf(doc) {
    if (!this.blocks.has(doc)) this.blocks.set(doc, doc.text
      .split(/<\/?(?:p|li|tr|pre|ul|ol|table|tbody|thead|div)\b[^>]*>/)
      .map(block => block.replace(/<\/t[dh]>/g, " ").replace(/<[^>]*>/g, "").trim())
      .filter(block => block)
      .map(text => ({text, terms: new Set(this.words(text).map(stem))})));
    return this.blocks.get(doc);
  }
}

/** Return of each term what it tells of a page: the more, the fewer pages have it. */
function rarities(pages, termsOf, power) {
  const counts = new Map();
  for (const page of pages) for (const term of new Set(termsOf(page)))
    counts.set(term, (counts.get(term) || 0) + 1);
  return new Map([...counts].map(([term, count]) =>
    [term, Math.log(1 + (pages.length - count + 0.5) / (count + 0.5)) ** power]));
}

/** Return the sum over the ideas: of each idea, the term that is worth most counts. */
function best(ideas, worth) {
  let sum = 0;
  for (const idea of ideas) {
    let most = 0;
    for (const [term, weight] of idea) most = Math.max(most, weight * worth(term));
    sum += most;
  }
  return sum;
}

/** Return whether two words differ in one letter: one more, one less, another one, or two swapped. */
function isTypo(word, other) {
  if (word.length < 5 || Math.abs(word.length - other.length) > 1) return false;
  let start = 0;
  while (start < word.length && word[start] === other[start]) start++;
  const [a, b] = [word.slice(start), other.slice(start)];
  return a.slice(1) === b || a === b.slice(1) || a.slice(1) === b.slice(1)
    || (a[0] === b[1] && a[1] === b[0] && a.slice(2) === b.slice(2));
}

let site;
self.addEventListener("message", ({data: {type, data}}) => {
  if (type === SETUP) site = new Search(data);
  self.postMessage(type === SETUP ? {type: READY} : {type: RESULT, data: site.search(data)});
});
